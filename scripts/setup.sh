# Sourced by ./start and ./check: makes .venv and installs what is pinned. Quiet, quick when nothing changed, safe when
# two run at once, in a path with spaces, as root or not.

say() { printf '%s\n' "$*" >&2; }

fail() {
    say "$@"
    exit 1
}

# The first Python from 3.11 on that works and can make a virtual environment; else the first that works.
find_python() {
    local name first=
    for name in python3.13 python3.12 python3.11 python3 python3.14; do
        "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 || continue
        first=${first:-$name}
        "$name" -c 'import ensurepip, venv' >/dev/null 2>&1 && { printf %s "$name"; return; }
    done
    printf %s "$first"
}

make_venv() {
    local python package
    python=$(find_python)
    [ -n "$python" ] || fail "Python 3.11 or newer is missing: install it (on Debian and Ubuntu: apt-get install python3 python3-venv)."
    if ! "$python" -c 'import ensurepip, venv' >/dev/null 2>&1; then
        package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
        if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
            fail "Python's venv module is missing: run 'sudo apt-get install $package' and start again."
        fi
        say "Installing $package …"
        { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq -y install "$package"; } >&2 </dev/null ||
            fail "$package could not be installed: see above."
    fi
    say "Making the virtual environment (.venv) …"
    "$python" -m venv --clear .venv >&2 || fail "The virtual environment could not be made: see above."
}

install_pinned() { # install_pinned LABEL FILE…: the files' packages and this project
    local label=$1 file began=$SECONDS log=.venv/setup.log arguments=()
    shift
    for file in "$@"; do arguments+=(-r "$file"); done
    say "Installing $label …"
    if ! .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-input --require-hashes \
        "${arguments[@]}" >"$log" 2>&1 </dev/null ||
        ! .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-input --no-deps --no-build-isolation \
            --editable . >>"$log" 2>&1 </dev/null; then
        tail -n 15 "$log" >&2
        fail "The packages could not be installed (all of it: $PWD/$log). Is the package index reachable? Then start again."
    fi
    say "Done in $((SECONDS - began)) s."
}

# set_up NAME LABEL FILE…: what the files pin is installed, once for each state of the files and place of the clone.
set_up() {
    local name=$1 label=$2 state stamp
    shift 2
    stamp=.venv/.installed-$name
    state=$({ printf '%s\n' "$PWD" && cat pyproject.toml scripts/setup.sh "$@"; } | cksum)
    [ "$(cat "$stamp" 2>/dev/null)" = "$state" ] && [ -x .venv/bin/python ] && return
    exec 9<.
    ! command -v flock >/dev/null || flock 9 # a second one waits here, then finds the work done
    if [ "$(cat "$stamp" 2>/dev/null)" != "$state" ] || [ ! -x .venv/bin/python ]; then
        rm -f "$stamp"
        # A clone that was moved gets a new one: the commands in .venv/bin name the old place.
        grep -qsF "$PWD/.venv" .venv/pyvenv.cfg && .venv/bin/python -m pip --version >/dev/null 2>&1 || make_venv
        install_pinned "$label" "$@"
        printf '%s\n' "$state" >"$stamp"
    fi
    exec 9<&-
}

# system_program PROGRAM PACKAGE…: a program of the system's that tests need. Without root it is named, and its tests
# are skipped.
system_program() {
    local program=$1
    shift
    command -v "$program" >/dev/null && return
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        say "$program is missing, so its tests are skipped: run 'sudo apt-get install $*' to have them."
        return
    fi
    say "Installing $* …"
    { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install "$@"; } \
        >.venv/system.log 2>&1 </dev/null || fail "$* could not be installed (all of it: $PWD/.venv/system.log)."
}
