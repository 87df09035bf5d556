"""The files that put the bot onto a machine agree with the code and with each other."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.settings import Settings

ROOT = Path(__file__).parents[2]
EXAMPLES = {  # settings whose default is "unset": the file shows an example
    "REDIS_URL",
    "LONGTERM_URL",
    "OPENROUTER_API_KEY",
    "PUBLIC_URL",
    "ADMIN_API_KEY",
    "LOG_FORMAT",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "ALIVE_FILE",
}


def text(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def compose() -> dict[str, Any]:
    parsed: dict[str, Any] = yaml.safe_load(text("docker-compose.yml"))
    return parsed


def env_example() -> dict[str, str]:
    return dict(re.findall(r"^#([A-Z_]+)=(.*)$", text(".env.example"), re.MULTILINE))


def test_the_example_environment_names_each_setting_once() -> None:
    read = set(re.findall(r'read\("([A-Z_]+)"', text("config/settings.py")))
    assert set(env_example()) == read
    assert len(re.findall(r"^#[A-Z_]+=", text(".env.example"), re.MULTILINE)) == len(read)


def test_the_example_environment_shows_the_defaults() -> None:
    shown = {name: value for name, value in env_example().items() if name not in EXAMPLES}
    shown["LOG_FORMAT"] = Settings().log_format
    assert Settings.from_env(shown, dotenv=None) == Settings()


@pytest.mark.parametrize("name", sorted(EXAMPLES - {"OPENROUTER_API_KEY", "ADMIN_API_KEY"}))
def test_the_other_examples_are_allowed(name: str) -> None:
    changed = Settings.from_env({name: env_example()[name]}, dotenv=None)
    assert str(getattr(changed, name.lower())) == env_example()[name]


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-extras.txt", "requirements-test.txt"])
def test_requirements_hold_names_versions_and_hashes_alone(name: str) -> None:
    pin = re.compile(r"[a-z0-9][a-z0-9._-]*==[\w.]+( ; [^\\/]+)? \\")
    digest = re.compile(r"    --hash=sha256:[0-9a-f]{64}( \\)?")
    assert [line for line in text(name).splitlines() if not (pin.fullmatch(line) or digest.fullmatch(line))] == []


def test_every_declared_package_is_pinned() -> None:
    project = tomllib.loads(text("pyproject.toml"))
    groups = {
        "requirements.txt": project["project"]["dependencies"] + project["build-system"]["requires"],
        "requirements-test.txt": project["project"]["optional-dependencies"]["test"],
    }
    pinned: set[str] = set()
    for file, declared in groups.items():
        pinned |= set(re.findall(r"^([a-z0-9._-]+)==", text(file), re.MULTILINE))
        names = {re.split(r"[\[<>=; ]", package, maxsplit=1)[0].lower().replace("_", "-") for package in declared}
        assert names - pinned == set()


def test_the_services_are_redis_serve_worker_and_a_scheduled_cleanup() -> None:
    services = compose()["services"]
    assert {name for name, one in services.items() if "profiles" not in one} == {"redis", "serve", "worker", "cleanup"}
    assert services["serve"]["command"][:2] == ["chat-chat", "serve"]
    assert services["worker"]["command"] == ["chat-chat", "worker"]
    assert "chat-chat cleanup" in services["cleanup"]["command"][2]
    for name in ("serve", "worker", "cleanup"):
        assert services[name]["environment"]["REDIS_URL"] == "redis://redis:6379/0"
        needed = services[name]["depends_on"]
        assert needed["redis"] == {"condition": "service_healthy"}
        # Where there is no database of ours, nobody waits for its tables.
        assert needed["migrate"] == {"condition": "service_completed_successfully", "required": False}
        assert services[name]["read_only"] is True


def test_the_database_is_a_profile_whose_tables_are_there_before_anybody_uses_them() -> None:
    services = compose()["services"]
    assert {name for name, one in services.items() if one.get("profiles") == ["postgres"]} == {"postgres", "migrate"}
    assert services["migrate"]["command"] == ["chat-chat", "migrate"]
    assert services["migrate"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    assert services["migrate"]["restart"] == "no"


def test_services_are_bounded_hold_no_privileges_and_are_looked_at() -> None:
    for name, one in compose()["services"].items():
        assert set(one["deploy"]["resources"]["limits"]) == {"cpus", "memory"}, name
        assert one["security_opt"] == ["no-new-privileges:true"]
        if name not in ("postgres", "migrate"):
            assert (one["cap_drop"], one["read_only"]) == (["ALL"], True)
    worker = compose()["services"]["worker"]
    # Any number of it may run: nothing of it is taken on the host.
    assert {"ports", "container_name"} & worker.keys() == set()
    assert worker["environment"]["ALIVE_FILE"] in worker["healthcheck"]["test"][1]


def test_a_worker_is_given_the_time_it_takes_to_end() -> None:
    seconds = int(compose()["services"]["worker"]["stop_grace_period"].removesuffix("s"))
    assert seconds >= Settings().shutdown_grace + 5


def test_the_composed_redis_keeps_what_it_acknowledged() -> None:
    command = compose()["services"]["redis"]["command"]
    options = dict(zip(command[1::2], command[2::2], strict=True))
    assert options == {
        "--appendonly": "yes",
        "--appendfsync": "everysec",
        "--save": "",
        "--maxmemory-policy": "noeviction",
    }
    assert compose()["services"]["redis"]["volumes"] == ["redis:/data"]


def test_each_named_volume_is_declared() -> None:
    used = {
        volume.split(":")[0]
        for service in compose()["services"].values()
        for volume in service["volumes"]
        if not volume.startswith(".")
    }
    assert used == set(compose()["volumes"])


def test_what_the_image_copies_is_let_through_and_secrets_are_not() -> None:
    copied = {
        source
        for line in re.findall(r"^COPY (?!--from)(.+)$", text("Dockerfile"), re.MULTILINE)
        for source in line.split()[:-1]
    }
    ignored = text(".dockerignore").splitlines()
    assert ignored[0] == "*"
    assert copied == {line[1:] for line in ignored if line.startswith("!")}
    assert "config/secrets" in ignored
    assert not any(source.startswith(".env") for source in copied)


def test_the_image_runs_as_an_unprivileged_user_with_a_health_check() -> None:
    final = text("Dockerfile").rpartition("\nFROM ")[2]
    assert re.findall(r"^USER (.+)$", final, re.MULTILINE) == ["chatchat"]
    assert "/healthz" in final
