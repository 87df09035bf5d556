"""Every command as an operator meets it: help, exit status, one clear line when something is wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from gateway.cli import cli
from tests.acceptance.processes import ROOT

pytestmark = pytest.mark.slow


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name)


def chat_chat(folder: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "DATA_DIR": str(folder / "data")} | env
    return subprocess.run(
        [sys.executable, "-m", "gateway", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("path", list(commands(cli)), ids=" ".join)
def test_help_says_what_it_does(path: tuple[str, ...]) -> None:
    made = CliRunner().invoke(cli, [*path, "--help"], prog_name="chat-chat")
    assert (made.exit_code, made.stderr) == (0, "")
    assert made.stdout.startswith(f"Usage: {' '.join(('chat-chat', *path))}")


@pytest.mark.parametrize(
    ("arguments", "env", "word"),
    [
        (("chat", "--tenant", "nobody"), {}, "there is no tenant 'nobody'"),
        (("run",), {"REDIS_URL": "http://x"}, "REDIS_URL"),
        (("serve",), {"LOG_LEVEL": "LOUD"}, "LOG_LEVEL"),
        (("worker",), {"MEMORY_TTL_MIN": "soon"}, "MEMORY_TTL_MIN"),
        (("run",), {"LONGTERM_URL": "mysql://u:p@127.0.0.1/x"}, "LONGTERM_URL"),
        (("serve", "--host", "192.0.2.1"), {}, "can't listen on 192.0.2.1"),
        (("tenants", "new", "Not A Name"), {}, "Not A Name"),
        (("cleanup", "--tenant", "nobody"), {}, "there is no tenant 'nobody'"),
        (("webhooks", "set", "--tenant", "nobody"), {}, "there is no tenant 'nobody'"),
        (("dead-letters", "show", "--tenant", "shop", "x"), {}, "no dead letter's id"),
        (("dead-letters", "list", "--tenant", "shop"), {"REDIS_URL": "unix:///nowhere/redis.sock"}, "Redis"),
        (("dead-letters", "retry", "--tenant", "nobody", "--all"), {}, "there is no tenant 'nobody'"),
        (("cleanup",), {"REDIS_URL": "unix:///nowhere/redis.sock"}, "Redis can't be used"),
        (("dead-letters", "show", "--tenant", "shop", "9" * 30), {}, "no dead letter's id"),
        (("dead-letters", "drop", "--tenant", "shop", "²"), {}, "no dead letter's id"),
        (("memory", "show", "--tenant", "shop", "--user", "line:U1"), {"LM_MAX_EVENTS": "many"}, "LM_MAX_EVENTS"),
        (("memory", "show", "--tenant", "shop", "--user", "u"), {"LONGTERM_URL": "postgresql://127.0.0.1:1/x"}, "SQL"),
        (("memory", "search", "--tenant", "shop", "--user", "u", "q"), {"REDIS_URL": "http://x"}, "REDIS_URL"),
        (("memory", "export", "--tenant", "shop", "--all-users"), {"LOG_LEVEL": "LOUD"}, "LOG_LEVEL"),
        (("memory", "import", "--tenant", "shop", __file__), {"LOG_LEVEL": "LOUD"}, "LOG_LEVEL"),
        (("memory", "forget", "--tenant", "shop", "--user", "u", "--yes"), {"DATA_DIR": __file__}, __file__),
        (("run", "--port", "0"), {"REDIS_URL": "unix:///nowhere/redis.sock", "DATA_DIR": __file__}, __file__),
    ],
)
def test_what_goes_wrong_is_one_line_and_exit_status_1(
    arguments: tuple[str, ...], env: dict[str, str], word: str, tmp_path: Path
) -> None:
    made = chat_chat(tmp_path, *arguments, **env)
    assert (made.returncode, made.stdout, made.stderr.count("\n")) == (1, "", 1), made.stderr
    assert word in made.stderr
    assert "Traceback" not in made.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        *(("fly",), ("--loud",), ("run", "--prot", "1"), ("run", "--port", "99999"), ("chat",), ("memory", "show")),
        *(("tenants", "check", "--lang", "xx"), ("memory", "import", "--tenant", "shop", "nowhere.jsonl"), ("mcp",)),
        *(("dead-letters", "drop", "--tenant", "shop"), ("tenants", "new")),
    ],
)
def test_a_wrong_call_is_one_line_and_exit_status_2(arguments: tuple[str, ...], tmp_path: Path) -> None:
    made = chat_chat(tmp_path, *arguments)
    assert (made.returncode, made.stdout, made.stderr.count("\n")) == (2, "", 1), made.stderr
    assert made.stderr.startswith("chat-chat: ")
    assert made.stderr.endswith(" --help`\n")


def test_a_group_by_itself_shows_what_it_has(tmp_path: Path) -> None:
    made = chat_chat(tmp_path, "memory")
    assert (made.returncode, made.stdout) == (2, "")
    assert "reindex" in made.stderr


def test_what_keeps_a_process_from_starting_is_all_that_it_says(tmp_path: Path) -> None:
    now, before = "0a" * 32, "0b" * 32
    (tmp_path / "config" / "tenants").mkdir(parents=True)
    (tmp_path / "config" / "tenants" / "shop.yaml").write_text("name: Shop\nchannels: {web: {platform: web}}\n")
    person = {"tenant_id": "shop", "user_id": "line:U1", "events": []}
    line = {"format": "chat-chat.memory/1", "tenant_id": "shop", "user_id": "line:U1", "memory": person}
    (tmp_path / "people.jsonl").write_text(json.dumps(line))
    taken = chat_chat(tmp_path, "memory", "import", "--tenant", "shop", "people.jsonl", ENCRYPTION_KEY=before)
    assert (taken.returncode, taken.stderr) == (0, "")
    for command in (("run", "--port", "0"), ("serve", "--port", "0"), ("worker",)):
        made = chat_chat(tmp_path, *command, ENCRYPTION_KEY=now, LOG_LEVEL="ERROR")
        assert (made.returncode, made.stdout) == (1, "")
        said = {one for one in made.stderr.splitlines() if "ENCRYPTION_KEY: " not in one}
        assert said == set(), made.stderr
