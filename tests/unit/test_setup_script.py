"""scripts/setup.sh on machines that lack something, staged with commands of our own in the PATH."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "setup.sh"
OLD = "exit 1"
NO_VENV = 'case "$2" in *ensurepip*) exit 1;; *print*) echo python3.11-venv;; esac'
GOOD = "exit 0"


class Machine:
    """A folder with a clone's files (its path has a space) and the only commands that the script finds."""

    def __init__(self, folder: Path) -> None:
        self.clone = folder / "the clone"
        self.commands = folder / "commands"
        for made in (self.clone / "scripts", self.commands):
            made.mkdir(parents=True)
        for file in ("pyproject.toml", "requirements.txt"):
            (self.clone / file).write_text("", "utf-8")
        (self.clone / "scripts" / "setup.sh").write_bytes(SCRIPT.read_bytes())
        for command in ("cat", "cksum", "flock", "grep", "rm", "tail"):
            (self.commands / command).symlink_to(f"/usr/bin/{command}")
        self.has("id", "echo 1000")

    def has(self, command: str, body: str) -> None:
        self.script(self.commands / command, body)

    def script(self, path: Path, body: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/bash\n{body}\n", "utf-8")
        path.chmod(0o755)

    def has_venv(self, body: str) -> None:
        self.script(self.clone / ".venv/bin/python", body)
        (self.clone / ".venv/pyvenv.cfg").write_text(f"command = python3 -m venv {self.clone}/.venv\n", "utf-8")

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["/bin/bash", "-euc", f". scripts/setup.sh; {command}"],
            cwd=self.clone,
            env={"PATH": str(self.commands), "LC_ALL": "C.UTF-8"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_python_that_works_and_has_venv_is_chosen_before_newer_ones_that_do_not(machine: Machine) -> None:
    machine.has("python3.13", OLD)  # as a version manager's stand-in for a version that is not active
    machine.has("python3.12", NO_VENV)
    machine.has("python3", GOOD)
    assert machine.run("find_python").stdout == "python3"


def test_without_a_fitting_python_it_says_what_to_install(machine: Machine) -> None:
    machine.has("python3", OLD)
    done = machine.run("set_up run packages requirements.txt")
    assert done.returncode == 1
    assert done.stderr == (
        "Python 3.11 or newer is missing: install it (on Debian and Ubuntu: apt-get install python3 python3-venv).\n"
    )


def test_without_venv_and_without_root_it_names_the_package(machine: Machine) -> None:
    machine.has("python3.11", NO_VENV)
    done = machine.run("set_up run packages requirements.txt")
    assert done.returncode == 1
    assert "run 'sudo apt-get install python3.11-venv' and start again" in done.stderr


def test_without_venv_as_root_it_installs_the_package(machine: Machine) -> None:
    machine.has("python3.11", NO_VENV)
    machine.has("id", "echo 0")
    machine.has("apt-get", 'echo "apt-get $*"')
    done = machine.run("make_venv")
    assert "apt-get -qq -y install python3.11-venv\n" in done.stderr


def test_a_second_run_does_nothing_until_a_file_changes(machine: Machine) -> None:
    machine.has_venv('echo "$*" >>calls')
    set_up = "set_up run packages requirements.txt"

    def calls() -> int:
        assert machine.run(set_up).returncode == 0
        return len((machine.clone / "calls").read_text().splitlines())

    first = calls()
    assert calls() == first
    (machine.clone / "requirements.txt").write_text("something==1\n", "utf-8")
    assert calls() == 2 * first


def test_a_clone_that_was_moved_gets_a_new_environment(machine: Machine) -> None:
    machine.has_venv("exit 0")
    assert machine.run("set_up run packages requirements.txt").returncode == 0
    machine.clone = machine.clone.rename(machine.clone.with_name("moved"))
    machine.has("python3", 'echo "$*"')
    assert "-m venv --clear .venv\n" in machine.run("set_up run packages requirements.txt").stderr


def test_of_two_at_once_one_installs(machine: Machine) -> None:
    machine.has_venv('echo "$*" >>calls')
    machine.run("(set_up run packages requirements.txt) & set_up run packages requirements.txt; wait")
    installs = [line for line in (machine.clone / "calls").read_text().splitlines() if "--require-hashes" in line]
    assert len(installs) == 1


def test_a_failed_installation_shows_the_end_of_its_log_and_is_tried_again(machine: Machine) -> None:
    machine.has_venv('case "$*" in *install*) echo "no such host" >&2; exit 1;; esac')
    for _ in range(2):
        done = machine.run("set_up run packages requirements.txt")
        assert done.returncode == 1
        assert done.stderr.splitlines()[-2] == "no such host"
        assert "Is the package index reachable?" in done.stderr.splitlines()[-1]


def test_both_commands_can_be_executed() -> None:
    assert all(os.access(SCRIPT.parents[1] / name, os.X_OK) for name in ("start", "check", ".ci/run"))
