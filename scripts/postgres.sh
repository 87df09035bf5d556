#!/usr/bin/env bash
# A PostgreSQL of its own for tests and trials: scripts/postgres.sh FOLDER [OPTION…]
# Its data and its unix socket lie in FOLDER, it listens on no network, and it runs until this process is ended (SIGINT:
# at once and in order). PostgreSQL refuses to run as root: then it runs as `postgres`, or as `nobody`.
# Options are those of postgres itself, and win over the ones below.
#   scripts/postgres.sh /tmp/trial &    then    LONGTERM_URL='postgresql://postgres@/postgres?host=/tmp/trial'
set -eu
[ $# -ge 1 ] || { echo "usage: scripts/postgres.sh FOLDER [OPTION…]" >&2; exit 2; }

bin=${POSTGRES_BIN:-}
for place in /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /opt/homebrew/opt/postgresql*/bin; do
    [ -n "$bin" ] || [ ! -x "$place/postgres" ] || bin=$place
done
[ -n "$bin" ] || { found=$(command -v postgres) && bin=$(dirname "$found"); } ||
    { echo "PostgreSQL is missing: run 'apt-get install postgresql'." >&2; exit 1; }

mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
as=()
if [ "$(id -u)" = 0 ]; then
    user=postgres
    id "$user" >/dev/null 2>&1 || user=nobody
    chown "$user" "$folder"
    as=(setpriv --reuid="$user" --regid="$(id -g "$user")" --clear-groups --inh-caps=-all)
fi
cd "$folder"
[ -e data/PG_VERSION ] || "${as[@]}" "$bin/initdb" --pgdata=data --username=postgres --auth=trust --encoding=UTF8 \
    --locale=C.UTF-8 --no-sync --no-instructions >initdb.log 2>&1 || { cat initdb.log >&2; exit 1; }
# What a crash of the machine would cost does not matter here.
exec "${as[@]}" "$bin/postgres" -D data -c unix_socket_directories="$folder" -c listen_addresses= -c fsync=off \
    -c full_page_writes=off -c synchronous_commit=off -c shared_buffers=32MB -c max_connections=100 "$@"
