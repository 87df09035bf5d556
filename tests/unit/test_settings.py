from __future__ import annotations

from pathlib import Path

import pytest

from config.settings import Settings, SettingsError


def test_without_any_variable_every_setting_has_its_documented_default() -> None:
    settings = Settings.from_env({}, dotenv=None)
    assert settings.redis_url is None
    assert settings.redis_cluster is False
    assert (settings.data_dir, settings.config_dir) == (Path("data"), Path("config"))
    assert (settings.longterm_url, settings.lm_compression) == (None, "none")
    assert settings.openrouter_api_key is None
    assert settings.openrouter_base_url == "https://openrouter.ai/api/v1"
    assert settings.openrouter_model == "openai/gpt-4o-mini"
    assert settings.line_api_base == "https://api.line.me"
    assert settings.line_data_api_base == "https://api-data.line.me"
    assert settings.telegram_api_base == "https://api.telegram.org"
    assert (settings.public_url, settings.admin_api_key) == (None, None)
    assert settings.enable_memory is True
    assert (settings.memory_max_turns, settings.memory_ttl_min, settings.memory_max_conversations) == (10, 30, 0)
    assert (settings.lm_max_events, settings.lm_retention_days, settings.importance_threshold) == (1000, 365, 0.5)
    assert settings.log_level == "INFO"
    assert settings.shutdown_grace == 25.0


def test_every_variable_is_read() -> None:
    settings = Settings.from_env(
        {
            "REDIS_URL": "rediss://:pw@cache:6380/1",
            "REDIS_CLUSTER": "true",
            "DATA_DIR": "/srv/data",
            "CONFIG_DIR": "/srv/config",
            "LONGTERM_URL": "postgresql://u:p@db/chat",
            "LM_COMPRESSION": "zstd",
            "OPENROUTER_API_KEY": "sk-invented",
            "OPENROUTER_BASE_URL": "http://localhost:1234/v1/",
            "OPENROUTER_MODEL": "some/model",
            "LINE_API_BASE": "http://127.0.0.1:1/",
            "LINE_DATA_API_BASE": "http://127.0.0.1:2",
            "TELEGRAM_API_BASE": "http://127.0.0.1:3",
            "PUBLIC_URL": "https://bot.example.com/",
            "ADMIN_API_KEY": "invented-admin-key",
            "ENABLE_MEMORY": "no",
            "MEMORY_MAX_TURNS": "4",
            "MEMORY_TTL_MIN": "0",
            "MEMORY_MAX_CONVERSATIONS": "7",
            "LM_MAX_EVENTS": "5",
            "LM_RETENTION_DAYS": "6",
            "IMPORTANCE_THRESHOLD": "0.7",
            "LOG_LEVEL": "debug",
            "LOG_FORMAT": "JSON",
            "SHUTDOWN_GRACE": "2.5",
        },
        dotenv=None,
    )
    assert settings == Settings(
        redis_url="rediss://:pw@cache:6380/1",
        redis_cluster=True,
        data_dir=Path("/srv/data"),
        config_dir=Path("/srv/config"),
        longterm_url="postgresql://u:p@db/chat",
        lm_compression="zstd",
        openrouter_api_key="sk-invented",
        openrouter_base_url="http://localhost:1234/v1",
        openrouter_model="some/model",
        line_api_base="http://127.0.0.1:1",
        line_data_api_base="http://127.0.0.1:2",
        telegram_api_base="http://127.0.0.1:3",
        public_url="https://bot.example.com",
        admin_api_key="invented-admin-key",
        enable_memory=False,
        memory_max_turns=4,
        memory_ttl_min=0,
        memory_max_conversations=7,
        lm_max_events=5,
        lm_retention_days=6,
        importance_threshold=0.7,
        log_level="DEBUG",
        log_format="json",
        shutdown_grace=2.5,
    )


@pytest.mark.parametrize("word", ["1", "true", "TRUE", "yes", "Yes", "y", "Y", " true "])
def test_words_that_are_true(word: str) -> None:
    assert Settings.from_env({"REDIS_CLUSTER": word}, dotenv=None).redis_cluster is True


@pytest.mark.parametrize("word", ["0", "false", "False", "no", "n"])
def test_words_that_are_false(word: str) -> None:
    assert Settings.from_env({"ENABLE_MEMORY": word}, dotenv=None).enable_memory is False


def test_the_environment_goes_before_the_file_and_an_empty_value_counts_as_unset(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text(
        "# a comment\nexport LM_MAX_EVENTS=5\nMEMORY_TTL_MIN=60\r\nOPENROUTER_API_KEY=\n"
        "OPENROUTER_MODEL='from/file'  # why\nADMIN_API_KEY=invented$x${y}\n",
        encoding="utf-8-sig",
    )
    settings = Settings.from_env({"MEMORY_TTL_MIN": "15", "LM_MAX_EVENTS": "", "LOG_LEVEL": " "}, dotenv=file)
    assert settings.memory_ttl_min == 15
    assert settings.lm_max_events == 5
    assert settings.openrouter_api_key is None
    assert settings.openrouter_model == "from/file"
    assert settings.admin_api_key == "invented$x${y}"  # nothing is filled in: a key may hold a $
    assert settings.log_level == "INFO"


def test_a_missing_dotenv_file_is_no_mistake(tmp_path: Path) -> None:
    assert Settings.from_env({}, dotenv=tmp_path / ".env").memory_ttl_min == 30


def test_a_dotenv_file_in_another_encoding_is_named(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_bytes("A=ร้าน".encode("cp874"))
    with pytest.raises(SettingsError) as caught:
        Settings.from_env({}, dotenv=file)
    assert str(caught.value) == f"{file}: not UTF-8 text; save it as UTF-8"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("REDIS_CLUSTER", "perhaps", "'perhaps' is neither true nor false; allowed: 1 true yes y, 0 false no n"),
        ("MEMORY_MAX_TURNS", "0", "0 is out of range; allowed: a whole number from 1 to 1000"),
        ("MEMORY_TTL_MIN", "-1", "-1 is out of range; allowed: a whole number from 0 to 525600"),
        ("MEMORY_TTL_MIN", "30m", "'30m' is not a whole number; allowed: a whole number from 0 to 525600"),
        ("MEMORY_TTL_MIN", "๓๐", "'๓๐' is not a whole number; allowed: a whole number from 0 to 525600"),
        ("LM_MAX_EVENTS", "1.5", "'1.5' is not a whole number; allowed: a whole number from 1"),
        ("IMPORTANCE_THRESHOLD", "1.1", "1.1 is out of range; allowed: a number from 0 to 1"),
        ("IMPORTANCE_THRESHOLD", "nan", "'nan' is not a number; allowed: a number from 0 to 1"),
        ("SHUTDOWN_GRACE", "soon", "'soon' is not a number; allowed: a number from 0 to 3600"),
        ("LM_COMPRESSION", "lz4", "'lz4' is not known; allowed: none, gzip, zstd"),
        ("LOG_FORMAT", "xml", "'xml' is not known; allowed: console, json"),
        ("LOG_LEVEL", "LOUD", "'LOUD' is not known; allowed: DEBUG, INFO, WARNING, ERROR, CRITICAL"),
        ("OPENROUTER_MODEL", "a b", "holds white space; allowed: a model's name such as openai/gpt-4o-mini"),
        ("LONGTERM_URL", "postgresql:", None),
        ("LONGTERM_URL", "postgresql://u@/d?port=1", None),
        ("REDIS_URL", "redis://", None),
        ("REDIS_URL", "unix://", None),
        ("REDIS_URL", "redis://host:99999", None),
        ("LINE_API_BASE", "api.line.me", None),
        ("PUBLIC_URL", "http://bot.example.com", None),
        ("DATA_DIR", "a\0b", "holds a NUL character; allowed: a path"),
    ],
)
def test_a_wrong_value_gives_one_line_with_the_variable_and_what_is_allowed(
    name: str, value: str, message: str | None
) -> None:
    with pytest.raises(SettingsError) as caught:
        Settings.from_env({name: value}, dotenv=None)
    line = str(caught.value)
    assert line.startswith(f"{name}: ")
    assert "allowed: " in line
    assert "\n" not in line
    if message is not None:
        assert line == f"{name}: {message}"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("REDIS_URL", "http://:hushhush@host"),
        ("LONGTERM_URL", "mysql://u:hushhush@host/db"),
        ("LONGTERM_URL", "postgresql://u:hushhush\u2100@host/db"),
        ("OPENROUTER_API_KEY", "hushhush two"),
        ("ADMIN_API_KEY", "hushhushกข"),
        ("OPENROUTER_BASE_URL", "ftp://u:hushhush@host"),
    ],
)
def test_a_wrong_secret_is_not_repeated_in_the_complaint(name: str, value: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Settings.from_env({name: value}, dotenv=None)
    assert "hushhush" not in str(caught.value)
    assert str(caught.value).startswith(f"{name}: ")


def test_plain_http_is_a_public_address_on_this_machine_alone() -> None:
    assert Settings.from_env({"PUBLIC_URL": "http://localhost:8080"}, dotenv=None).public_url == "http://localhost:8080"


def test_no_secret_stands_in_the_repr() -> None:
    text = repr(
        Settings.from_env(
            {
                "REDIS_URL": "redis://:hushhush@h",
                "LONGTERM_URL": "postgresql://u:hushhush@h/d",
                "OPENROUTER_API_KEY": "hushhush",
                "ADMIN_API_KEY": "hushhush",
                "SHOP_LINE_TOKEN": "hushhush",
                "OPENROUTER_BASE_URL": "https://u:hushhush@h",
            },
            dotenv=None,
        )
    )
    assert "hushhush" not in text
    assert "openrouter_model='openai/gpt-4o-mini'" in text


def test_the_process_environment_is_read_when_none_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_TTL_MIN", "77")
    assert Settings.from_env(dotenv=None).memory_ttl_min == 77


def test_a_secret_may_come_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from config import settings as module

    mounted = tmp_path / "run"
    mounted.mkdir()
    monkeypatch.setattr(module, "MOUNTED", mounted)
    (mounted / "admin_api_key").write_text("from-docker\n")
    (tmp_path / "key").write_text("sk-or-invented\n")
    env = {"OPENROUTER_API_KEY_FILE": str(tmp_path / "key")}
    made = Settings.from_env(env, None)
    assert (made.openrouter_api_key, made.admin_api_key) == ("sk-or-invented", "from-docker")
    assert Settings.from_env({**env, "OPENROUTER_API_KEY": "plain"}, None).openrouter_api_key == "plain"
    with pytest.raises(SettingsError, match=r"REDIS_URL_FILE: /nowhere does not exist; allowed: the path of a file"):
        Settings.from_env({"REDIS_URL_FILE": "/nowhere"}, None)


def test_a_database_on_a_socket_or_on_several_servers_can_be_named() -> None:
    for url in ("postgresql://u@/db?host=/run/postgresql", "postgresql:///db?host=a,b&target_session_attrs=read-write"):
        assert Settings.from_env({"LONGTERM_URL": url}, dotenv=None).longterm_url == url
