from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from config import secrets
from config.settings import Settings
from config.tenants import LineChannel, TelegramChannel, Tenant, TenantError, load_tenant
from processors.models import EventType

REPO = Path(__file__).parents[2]
BANGKOK = timezone(timedelta(hours=7))
SMALL = "name: ร้านเล็ก\nchannels: {web: {platform: web}}\n"


def write(config: Path, text: str, name: str = "shop.yaml") -> Path:
    file = config / "tenants" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def load(config: Path, text: str, **settings: object) -> Tenant:
    variables = settings.pop("variables", {})
    return load_tenant(
        write(config, text),
        Settings(config_dir=config, variables=variables, **settings),  # type: ignore[arg-type]
    )


def mistakes(config: Path, text: str, name: str = "shop.yaml") -> list[str]:
    """The mistakes of a file, without its path."""
    file = write(config, text, name)
    with pytest.raises(TenantError) as caught:
        load_tenant(file, Settings(config_dir=config))
    assert all(mistake.file == file for mistake in caught.value.mistakes)
    return [str(mistake).removeprefix(f"{file}:") for mistake in caught.value.mistakes]


def test_two_commands_of_one_name_and_names_that_no_command_can_have_are_mistakes(tmp_path: Path) -> None:
    assert mistakes(tmp_path, SMALL + "commands: {human: bot}\n") == [
        "3:11: commands: has two commands /bot — give each a name of its own, or switch one off with false"
    ]
    assert mistakes(tmp_path, SMALL + "commands: {mydatas: false, human: Staff}\n") == [
        "3:12: commands.mydatas: is none of start, help, reset, language, mydata, forget, link, rate, human, bot"
        " — did you mean mydata?",
        "3:35: commands.human: is not a command's name"
        " — use 1 to 32 of a-z, 0-9 and _; or false to switch the command off",
    ]


def test_a_blocked_user_is_named_with_the_platform(tmp_path: Path) -> None:
    assert load(tmp_path, SMALL + "blocked_users: ['line:U1', 'telegram:5']\n").blocked_users == (
        "line:U1",
        "telegram:5",
    )
    assert mistakes(tmp_path, SMALL + "blocked_users: [U123]\n") == [
        "3:17: blocked_users[0]: is not a user's id — write it with its platform, such as line:U… or telegram:12345"
    ]


class TestAGoodFile:
    def test_needs_a_name_and_channels_alone_and_takes_the_defaults_for_the_rest(self, tmp_path: Path) -> None:
        tenant = load(tmp_path, SMALL)
        assert (tenant.id, tenant.name) == ("shop", "ร้านเล็ก")
        assert (tenant.timezone, tenant.language) == ("Asia/Bangkok", "auto")
        assert list(tenant.agents) == ["default"]
        agent = tenant.agents["default"]
        assert (agent.model, agent.conversation_memory, agent.system_role) == ("openai/gpt-4o-mini", True, "system")
        assert (agent.max_tool_rounds, agent.vision, agent.temperature) == (3, False, None)
        assert (tenant.llm.api_key, tenant.llm.timeout) == (None, 30.0)
        assert tenant.understanding.policy == "always"
        assert tenant.memory.model_dump() == {
            "sm_ttl": 1800,
            "max_turns": 10,
            "importance_threshold": 0.5,
            "extract_every": 5,
            "max_events_per_user": 1000,
            "event_retention_days": 365,
            "transcript_retention_days": 90,
            "embeddings": "local",
        }
        assert tenant.behaviour.model_dump() == {
            "debounce_ms": 800,
            "debounce_max_ms": 3000,
            "stale_after": 3600,
            "max_attempts": 5,
            "groups": "mention",
            "rate_limit_per_minute": 20,
            "human_timeout_min": 120,
            "when_closed": "answer",
            "ask_rating": False,
        }

    def test_renames_commands_and_switches_them_off(self, tmp_path: Path) -> None:
        tenant = load(tmp_path, SMALL + "commands: {human: staff, mydata: false, reset: true}\n")
        words = [tenant.command(name) for name in ("human", "mydata", "reset", "bot")]
        assert words == ["staff", None, "reset", "bot"]

    def test_takes_the_environments_value_for_what_it_leaves_out(self, tmp_path: Path) -> None:
        tenant = load(
            tmp_path,
            SMALL + "agents: {sales: {model: own/model}}\nmemory: {max_turns: 3}\n",
            memory_ttl_min=5,
            memory_max_turns=7,
            importance_threshold=0.9,
            lm_max_events=11,
            lm_retention_days=12,
            openrouter_model="env/model",
            openrouter_api_key="invented-env-key",
            openrouter_base_url="http://localhost:9/v1",
            enable_memory=False,
        )
        memory = tenant.memory
        assert (memory.sm_ttl, memory.max_turns, memory.importance_threshold) == (300, 3, 0.9)
        assert (memory.max_events_per_user, memory.event_retention_days) == (11, 12)
        assert (tenant.agents["default"].model, tenant.agents["sales"].model) == ("env/model", "own/model")
        assert tenant.agents["default"].conversation_memory is False
        assert tenant.llm.api_key is not None
        assert tenant.llm.api_key.get_secret_value() == "invented-env-key"
        assert tenant.llm.base_url == "http://localhost:9/v1"

    def test_its_own_endpoint_is_never_given_the_environments_key(self, tmp_path: Path) -> None:
        own = SMALL + "llm: {base_url: https://llm.example.com/v1}\n"
        assert load(tmp_path, own, openrouter_api_key="invented-env-key").llm.api_key is None
        same = SMALL + "llm: {base_url: https://openrouter.ai/api/v1/}\n"
        assert load(tmp_path, same, openrouter_api_key="invented-env-key").llm.api_key is not None

    def test_may_have_a_byte_order_mark_and_windows_line_ends(self, tmp_path: Path) -> None:
        file = write(tmp_path, "")
        file.write_bytes(b"\xef\xbb\xbf" + SMALL.replace("\n", "\r\n").encode())
        assert load_tenant(file, Settings(config_dir=tmp_path)).name == "ร้านเล็ก"

    def test_calls_its_default_agent_general_if_it_likes(self, tmp_path: Path) -> None:
        tenant = load(tmp_path, SMALL + "agents: {general: {instructions: hello}, sales: {}}\n")
        assert tenant.agent("default") == tenant.agent("general") == tenant.agents["default"]
        assert tenant.agents["default"].instructions == "hello"
        assert tenant.agent("sales") is not None
        assert tenant.agent("nobody") is None

    def test_may_leave_a_section_empty(self, tmp_path: Path) -> None:
        tenant = load(tmp_path, SMALL + "agents:\n  default:\nllm:\n  # api_key: x\nmemory: {sm_ttl: }\nfaq:\nstaff:\n")
        assert (tenant.llm.timeout, tenant.memory.sm_ttl, tenant.faq, tenant.staff) == (30.0, 1800, (), None)

    def test_may_write_a_chat_id_as_a_number(self, tmp_path: Path) -> None:
        tenant = load(
            tmp_path,
            "name: x\nchannels: {tg: {platform: telegram, bot_token: '1:a', mode: polling}}\n"
            "staff: {channel: tg, chat: -100123}\n",
        )
        assert tenant.staff is not None
        assert tenant.staff.chat == "-100123"

    def test_is_frozen_and_hides_its_secrets(self, tmp_path: Path) -> None:
        tenant = load(
            tmp_path,
            "name: x\nchannels:\n  a: {platform: line, channel_secret: hushhush, channel_access_token: hushhush2}\n"
            "  b: {platform: telegram, bot_token: '1:hushhush', webhook_secret: hushhush}\nllm: {api_key: hushhush}\n",
        )
        assert "hushhush" not in repr(tenant)
        assert "hushhush" not in tenant.model_dump_json()
        line, telegram = tenant.channels["a"], tenant.channels["b"]
        assert isinstance(line, LineChannel)
        assert isinstance(telegram, TelegramChannel)
        assert line.channel_secret.get_secret_value() == "hushhush"
        assert (line.allow_push, telegram.mode) == (True, "webhook")
        with pytest.raises(ValueError, match="frozen"):
            tenant.name = "y"  # type: ignore[misc]

    def test_keywords_know_the_eight_kinds(self, tmp_path: Path) -> None:
        tenant = load(tmp_path, SMALL + "keywords:\n" + "".join(f"  {kind}: [a {kind}]\n" for kind in EventType))
        assert list(tenant.keywords) == [str(kind) for kind in EventType]

    def test_takes_the_hash_of_an_api_key(self, tmp_path: Path) -> None:
        digest = "sha256:" + hashlib.sha256(b"invented").hexdigest()
        assert load(tmp_path, SMALL + f"api_keys: ['{digest}']\n").api_keys == (digest,)


class TestTexts:
    def test_a_plain_text_serves_every_language(self, tmp_path: Path) -> None:
        tenant = load(tmp_path, SMALL + "faq: [{questions: a, answer: สวัสดี}]\nreplies: {error: ขัดข้อง}\n")
        assert (tenant.faq[0].questions, tenant.faq[0].answer.within("en")) == (("a",), "สวัสดี")
        assert tenant.reply("error", "en") == "ขัดข้อง"

    def test_a_reply_in_one_language_leaves_the_other_built_in(self, tmp_path: Path) -> None:
        tenant = load(tmp_path, SMALL + "replies: {error: {th: ขัดข้อง}}\n")
        assert tenant.reply("error", "th") == tenant.reply("error", "mixed") == "ขัดข้อง"
        assert tenant.reply("error", "en").startswith("Sorry, something went wrong")

    def test_an_answer_in_one_language_is_better_than_none(self, tmp_path: Path) -> None:
        tenant = load(tmp_path, SMALL + "faq: [{questions: [a], answer: {en: hello}}]\n")
        assert tenant.faq[0].answer.within("th") == "hello"

    @pytest.mark.parametrize("name", ["welcome", "fallback", "error", "out_of_hours"])
    def test_every_reply_is_built_in_politely_in_both_languages(self, tmp_path: Path, name: str) -> None:
        tenant = load(tmp_path, SMALL)
        thai, english = tenant.reply(name, "th"), tenant.reply(name, "en")  # type: ignore[arg-type]
        assert "ค่ะ" in thai or "คะ" in thai
        assert english.isascii()

    def test_a_tenant_of_one_language_answers_in_it(self, tmp_path: Path) -> None:
        tenant = load(tmp_path, SMALL + "language: en\n")
        assert tenant.reply("welcome", "th") == "Hello and welcome! How can I help you today?"
        assert (tenant.speaks("th"), load(tmp_path, SMALL).speaks("mixed")) == ("en", "th")


class TestBusinessHours:
    HOURS = 'business_hours: {mon-fri: ["09:00-12:00", "13:00-18:00"], sat: "18:00-02:00"}\n'

    @pytest.mark.parametrize(
        ("local", "is_open"),
        [
            ((2026, 11, 27, 8, 59), False),  # a Friday
            ((2026, 11, 27, 9, 0), True),
            ((2026, 11, 27, 12, 30), False),
            ((2026, 11, 27, 17, 59), True),
            ((2026, 11, 27, 18, 0), False),
            ((2026, 11, 28, 17, 0), False),
            ((2026, 11, 28, 23, 0), True),
            ((2026, 11, 29, 1, 59), True),
            ((2026, 11, 29, 2, 0), False),
        ],
    )
    def test_have_several_blocks_a_day_and_end_after_midnight(
        self, tmp_path: Path, local: tuple[int, int, int, int, int], is_open: bool
    ) -> None:
        tenant = load(tmp_path, SMALL + self.HOURS)
        assert tenant.is_open(datetime(*local, tzinfo=BANGKOK).astimezone(UTC)) is is_open

    def test_a_shop_that_gives_none_is_always_open(self, tmp_path: Path) -> None:
        assert load(tmp_path, SMALL).is_open(datetime(2026, 11, 29, 3, 0, tzinfo=UTC)) is True

    def test_ranges_may_pass_the_weeks_end_and_days_may_be_listed(self, tmp_path: Path) -> None:
        tenant = load(tmp_path, SMALL + 'business_hours: {sat-mon: ["00:00-24:00"], "tue,thu": ["9:00-10:00"]}\n')
        days = [tenant.is_open(datetime(2026, 11, 23 + day, 9, 30, tzinfo=BANGKOK)) for day in range(7)]
        assert days == [True, True, False, True, False, True, True]


class TestSecrets:
    TEXT = "name: x\nchannels:\n  a: {platform: line, channel_secret: ${S}, channel_access_token: 'pre-${T}'}\n"

    def test_come_from_the_environment_or_a_file_beside(self, tmp_path: Path) -> None:
        (tmp_path / "secrets").mkdir()
        (tmp_path / "secrets" / "S").write_text("from-file\r\n")
        (tmp_path / "secrets" / "T").write_text("not-read\n")
        channel = load(tmp_path, self.TEXT, variables={"T": "from-env"}).channels["a"]
        assert isinstance(channel, LineChannel)
        assert channel.channel_secret.get_secret_value() == "from-file"
        assert channel.channel_access_token.get_secret_value() == "pre-from-env"

    def test_come_from_a_file_that_a_variable_names_or_from_where_docker_mounts_them(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        mounted = tmp_path / "run"
        mounted.mkdir()
        monkeypatch.setattr(secrets, "MOUNTED", mounted)
        (mounted / "s").write_text("from-docker\n")
        (tmp_path / "kept").write_text("from-kubernetes")
        channel = load(tmp_path, self.TEXT, variables={"T_FILE": str(tmp_path / "kept")}).channels["a"]
        assert isinstance(channel, LineChannel)
        assert channel.channel_secret.get_secret_value() == "from-docker"
        assert channel.channel_access_token is not None
        assert channel.channel_access_token.get_secret_value() == "pre-from-kubernetes"
        file = write(tmp_path, self.TEXT)
        with pytest.raises(TenantError, match="needs T, but T_FILE names a file that does not exist"):
            load_tenant(file, Settings(config_dir=tmp_path, variables={"T_FILE": "/nowhere/at/all"}))

    def test_the_tenants_id_stands_in_a_name_for_the_star(self, tmp_path: Path) -> None:
        text = "name: ${*_NAME}\nchannels: {}\n"
        named = {"SHOP_NAME": "One", "SHOP_7_ELEVEN_NAME": "Two"}
        assert load(tmp_path, text, variables=named).name == "One"
        file = write(tmp_path, text, "7-eleven.yaml")
        assert load_tenant(file, Settings(config_dir=tmp_path, variables=named)).name == "Two"

    def test_a_missing_one_is_named_with_tenant_field_and_variable(self, tmp_path: Path) -> None:
        secrets = tmp_path / "secrets"
        assert mistakes(tmp_path, self.TEXT) == [
            "3:39: channels.a.channel_secret: tenant shop needs the variable S, which is not set — "
            f"set S in the environment, or write it to {secrets / 'S'}",
            "3:67: channels.a.channel_access_token: tenant shop needs the variable T, which is not set — "
            f"set T in the environment, or write it to {secrets / 'T'}",
        ]

    def test_what_is_filled_in_is_neither_yaml_nor_looked_at_again(self, tmp_path: Path) -> None:
        tenant = load(tmp_path, "name: ${N}\nchannels: {}\n", variables={"N": "a: ${X} # b\n- c"})
        assert tenant.name == "a: ${X} # b\n- c"

    def test_are_filled_into_texts_and_can_be_escaped(self, tmp_path: Path) -> None:
        tenant = load(
            tmp_path,
            SMALL + "agents: {default: {instructions: 'Call ${PHONE}, write $${PHONE} and $5'}}\n"
            "replies: {error: ${PHONE}}\nfaq: [{questions: [a], answer: {th: ${PHONE}}}]\n",
            variables={"PHONE": "02-555-0148"},
        )
        assert tenant.agents["default"].instructions == "Call 02-555-0148, write ${PHONE} and $5"
        assert tenant.reply("error", "th") == tenant.faq[0].answer.within("th") == "02-555-0148"

    @pytest.mark.parametrize("name", ["../shop", "", "a b", "a-b"])
    def test_a_name_that_is_none_is_refused(self, tmp_path: Path, name: str) -> None:
        assert mistakes(tmp_path, SMALL + f"language: '${{{name}}}'\n") == [
            "3:11: language: tenant shop holds `${` with no variable's name after it — "
            "write ${NAME}, or $${ for the characters ${"
        ]

    def test_numbers_may_be_filled_in(self, tmp_path: Path) -> None:
        assert load(tmp_path, SMALL + "llm: {timeout: ${T}}\n", variables={"T": "12"}).llm.timeout == 12.0

    def test_a_secret_file_that_is_empty_or_no_text_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "secrets").mkdir()
        (tmp_path / "secrets" / "S").write_text("\n")
        (tmp_path / "secrets" / "T").write_bytes(b"\xff\xfe")
        first, second = mistakes(tmp_path, self.TEXT)
        assert first.endswith("is empty or too big — write the value alone into that file")
        assert second.endswith("is not UTF-8 text — save that file as UTF-8")


class TestInstructionFiles:
    def text(self, name: str) -> str:
        return SMALL + f"agents: {{default: {{instructions_file: {name}}}}}\n"

    @pytest.mark.parametrize("place", ["tenants/prompts/shop.md", "prompts/shop.md"])
    def test_are_found_beside_the_tenant_and_below_config_dir(self, tmp_path: Path, place: str) -> None:
        (tmp_path / place).parent.mkdir(parents=True)
        (tmp_path / place).write_text("พูดสุภาพ", encoding="utf-8")
        assert load(tmp_path, self.text("prompts/shop.md")).agents["default"].instructions == "พูดสุภาพ"

    @pytest.mark.parametrize("name", ["../../outside.md", "link.md", "/etc/hostname"])
    def test_never_leave_config_dir(self, tmp_path: Path, name: str) -> None:
        config = tmp_path / "config"
        config.mkdir()
        (tmp_path / "outside.md").write_text("secret")
        (config / "link.md").symlink_to(tmp_path / "outside.md")
        assert mistakes(config, self.text(name)) == [
            "3:39: agents.default.instructions_file: tenant shop names a file outside CONFIG_DIR — "
            f"name a file relative to the tenant's file or to {config}, such as prompts/shop.md"
        ]

    def test_a_missing_one_is_named(self, tmp_path: Path) -> None:
        (line,) = mistakes(tmp_path, self.text("prompts/shop.md"))
        assert line.startswith(
            "3:39: agents.default.instructions_file: tenant shop names a file that does not exist — "
        )

    def test_stand_instead_of_instructions_not_beside_them(self, tmp_path: Path) -> None:
        text = SMALL + "agents:\n  default:\n    instructions: a\n    instructions_file: b\n"
        assert mistakes(tmp_path, text) == [
            "6:5: agents.default.instructions_file: stands beside instructions — keep one of the two"
        ]


REMEDIES = [
    ("nme: x\n", "3:1: nme: is not a known field — did you mean name?"),
    ("id: x\n", "3:1: id: is not a known field — remove it: the file's name is the tenant's id"),
    (
        "debounce_ms: 3\n",
        "3:1: debounce_ms: is not a known field — did you mean behaviour.debounce_ms? It belongs under behaviour",
    ),
    ("understanding: {when: x}\n", "3:17: understanding.when: is not a known field — remove it; known here: policy"),
    ("timezone: Asia/Bankok\n", "3:11: timezone: is not a time zone — did you mean Asia/Bangkok?"),
    ("timezone: ../../etc\n", "3:11: timezone: is not a time zone — write a name such as Asia/Bangkok"),
    ("language: thai\n", "3:11: language: is none of th, en, auto — did you mean th?"),
    ("language: 日本語\n", "3:11: language: is none of th, en, auto — write one of th, en, auto"),
    ("agents: {a: {temprature: 1}}\n", "3:14: agents.a.temprature: is not a known field — did you mean temperature?"),
    ("agents: {a: {vision: maybe}}\n", "3:22: agents.a.vision: should be true or false — write true or false"),
    ("agents: {a: {temperature: 3}}\n", "3:27: agents.a.temperature: is out of range — write at most 2"),
    (
        "agents: {default: {}, general: {}}\n",
        "3:23: agents.general: is another name for default — keep one of the two",
    ),
    (
        "agents: {general: {vision: maybe}}\n",
        "3:28: agents.general.vision: should be true or false — write true or false",
    ),
    ("memory: {sm_ttl: -1}\n", "3:18: memory.sm_ttl: is out of range — write at least 0"),
    ("memory: {max_turns: ten}\n", "3:21: memory.max_turns: should be a whole number — write digits alone, such as 10"),
    (
        "memory: {importance_threshold: a}\n",
        "3:32: memory.importance_threshold: should be a number — write a number, such as 0.5",
    ),
    (
        "memory: 3\n",
        "3:9: memory: should be a section of fields — write its fields below it, indented, as `field: value`",
    ),
    ("llm: {timeout: 0}\n", "3:16: llm.timeout: is out of range — write more than 0"),
    (
        "llm: {base_url: llm.local}\n",
        "3:17: llm.base_url: is not an http(s) address — write an address such as https://openrouter.ai/api/v1",
    ),
    (
        "llm: {api_key: a b}\n",
        "3:16: llm.api_key: holds white space or characters outside ASCII, or is empty — paste the value alone",
    ),
    (
        "llm: {fallback_models: x}\n",
        "3:24: llm.fallback_models: should be a list — write [one, two], or each below it as `- one`",
    ),
    (
        "behaviour: {debounce_ms: 9000}\n",
        "3:12: behaviour: has a debounce_max_ms below debounce_ms — raise debounce_max_ms, or lower debounce_ms",
    ),
    ("behaviour: {groups: all}\n", "3:21: behaviour.groups: is none of mention, always, never — "),
    (
        "staff: {channel: web, chat: '1'}\n",
        "3:18: staff.channel: is a channel that can't reach staff — add a LINE or Telegram channel",
    ),
    (
        "staff: {channel: tg, chat: '1'}\n",
        "3:18: staff.channel: is none of this tenant's channels — add a LINE or Telegram channel",
    ),
    ("replies: {welcom: hi}\n", "3:11: replies.welcom: is not a known field — did you mean welcome?"),
    ("replies: {error: {fr: x}}\n", "3:19: replies.error.fr: is not a known field — remove it; known here: th, en"),
    ("replies: {error: {}}\n", "3:18: replies.error: is empty — write the text, or leave the field out"),
    (
        "replies: {error: 3}\n",
        "3:18: replies.error: should be a text — write {th: …, en: …} or a text, in quotes if it looks like a number",
    ),
    ("faq: [{question: [a], answer: b}]\n", "3:8: faq[0].question: is not a known field — did you mean questions?"),
    ("faq: [{questions: [], answer: b}]\n", "3:19: faq[0].questions: is empty — write it, or leave the field out"),
    ("faq: [{questions: [1], answer: b}]\n", "3:20: faq[0].questions[0]: should be a text — put it in quotes"),
    ("faq: [{questions: [a]}]\n", "3:7: faq[0].answer: is missing — add answer: …"),
    ("keywords: {COMPLAINTS: [a]}\n", "3:12: keywords.COMPLAINTS: is none of INQUIRY, FEEDBACK, "),
    (
        'business_hours: {mon-fry: ["09:00-12:00"]}\n',
        "3:18: business_hours.mon-fry: is not a day or a range of days — "
        "write mon, tue, wed, thu, fri, sat, sun: did you mean mon-fri?",
    ),
    (
        'business_hours: {sat: ["9-12"]}\n',
        "3:24: business_hours.sat[0]: is not a block of hours — "
        'write the opening and closing time, such as "09:00-18:00"',
    ),
    (
        'business_hours: {sat: ["09:00-09:00"]}\n',
        '3:24: business_hours.sat[0]: opens and closes at the same minute — write "00:00-24:00" for the whole day',
    ),
    (
        'business_hours: {sat: ["09:00-12:00", "11:00-13:00"]}\n',
        "3:17: business_hours: the blocks of sat overlap — let each block end before the next begins",
    ),
    (
        'business_hours: {sat: ["18:00-02:00"], sun: ["01:00-03:00"]}\n',
        "3:17: business_hours: the blocks of sat overlap — let each block end before the next begins",
    ),
    (
        'business_hours: {mon-fri: [], wed: ["09:00-12:00"]}\n',
        "3:17: business_hours: wed stands in more than one row — give each day one row",
    ),
    (
        "api_keys: [plain]\n",
        "3:12: api_keys[0]: is not the SHA-256 of a key — "
        "write sha256: and 64 hex digits; `printf %s KEY | sha256sum` prints them",
    ),
]


@pytest.mark.parametrize(("text", "line"), REMEDIES, ids=[text.strip()[:40] for text, _ in REMEDIES])
def test_a_mistake_is_shown_with_its_place_and_remedy(tmp_path: Path, text: str, line: str) -> None:
    found = mistakes(tmp_path, SMALL + text)
    assert [one[: len(line)] if line.endswith((" — ", ", ")) else one for one in found] == [line]


CHANNEL_REMEDIES = [
    ("{platform: lin}", "3:6: channels.a: has an unknown platform — did you mean line?"),
    ("{platform: 7}", "3:6: channels.a: has an unknown platform — write one of line, telegram, web, terminal"),
    ("", "3:3: channels.a: has no platform — add platform: line, telegram, web, terminal (one of them)"),
    (
        "{platform: line, channel_secret: x}",
        "3:6: channels.a: has no channel_access_token, so nothing can be answered — "
        "add channel_access_token, or channel_id: tokens are then made with it and the secret",
    ),
    (
        "{platform: telegram, bot_token: '1:x'}",
        "3:6: channels.a: has no webhook_secret, so anyone could forge messages — "
        "add webhook_secret: a random text of A-Z, a-z, 0-9, _ and -; or mode: polling",
    ),
    (
        "{platform: telegram, bot_token: '1:x', webhook_secret: 'a:b'}",
        "3:61: channels.a.webhook_secret: is not a secret that Telegram takes — use 1 to 256 of A-Z, a-z, 0-9, _ and -",
    ),
    (
        "{platform: telegram, bot_token: 1, mode: polling}",
        "3:38: channels.a.bot_token: should be a text — put it in quotes",
    ),
    (
        "{platform: telegram, token: '1:x', mode: polling, bot_token: '1:x'}",
        "3:27: channels.a.token: is not a known field — did you mean bot_token?",
    ),
    (
        "{platform: web, allowed_origins: [https://a.example/x]}",
        "3:40: channels.a.allowed_origins[0]: is not an origin — "
        "write scheme and host alone, such as https://www.example.com",
    ),
]


@pytest.mark.parametrize(("text", "line"), CHANNEL_REMEDIES, ids=[text[:50] for text, _ in CHANNEL_REMEDIES])
def test_a_mistake_in_a_channel_is_shown_with_its_place_and_remedy(tmp_path: Path, text: str, line: str) -> None:
    assert mistakes(tmp_path, f"name: x\nchannels:\n  a: {text}\n") == [line]


def test_a_channels_name_must_fit_into_an_address(tmp_path: Path) -> None:
    assert mistakes(tmp_path, "name: x\nchannels:\n  a/b: {platform: web}\n") == [
        "3:3: channels.a/b: is not a name — use 1 to 64 letters a-z, digits, _ and -, beginning with a letter or digit"
    ]


def test_two_channels_of_a_tenant_cannot_share_a_token(tmp_path: Path) -> None:
    text = "name: x\nchannels:\n" + "".join(
        f"  {name}: {{platform: telegram, bot_token: '1:x', mode: polling}}\n" for name in "ab"
    )
    assert mistakes(tmp_path, text) == [
        "3:3: channels.a: has the same token as another channel — "
        "give each channel its own token, or keep one of the two"
    ]


def test_staff_are_reached_through_the_nearest_channel_name(tmp_path: Path) -> None:
    text = (
        "name: x\nchannels: {telegram-main: {platform: telegram, bot_token: '1:x', mode: polling}}\n"
        "staff: {channel: telegram-mian, chat: '1'}\n"
    )
    assert mistakes(tmp_path, text) == [
        "3:18: staff.channel: is none of this tenant's channels — did you mean telegram-main?"
    ]


def test_every_mistake_is_shown_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    found = mistakes(
        tmp_path, "nam: x\nlanguage: xx\nchannels: {a: {platform: line, channel_secret: ${S}}}\nbogus: 1\n"
    )
    assert [line.split(" ")[0] + line.split(" ")[1] for line in found] == [
        "1:1:nam:",
        "2:11:language:",
        "3:15:channels.a:",
        "3:48:channels.a.channel_secret:",
        "4:1:bogus:",
    ]


def test_no_value_stands_in_a_mistake(tmp_path: Path) -> None:
    text = (
        "name: [hushhush]\nlanguage: hushhush\ntimezone: hushhush\nchannels:\n"
        "  a: {platform: hushhush}\n  b: {platform: telegram, bot_token: hushhush x, mode: hushhush}\n"
        "  c: {platform: web, allowed_origins: [hushhush]}\nllm: {base_url: hushhush, timeout: hushhush}\n"
        "api_keys: [hushhush]\nbusiness_hours: {mon: [hushhush]}\nreplies: {error: [hushhush]}\n"
    )
    found = mistakes(tmp_path, text)
    assert len(found) == 12
    assert "hushhush" not in "\n".join(found)


YAML_MISTAKES = [
    ("", "1:1: (file): is empty — write a tenant in it: `chat-chat tenants new ID` shows how"),
    ("# nothing\n", "1:1: (file): is empty — write a tenant in it: `chat-chat tenants new ID` shows how"),
    ("- a\n", "1:1: (file): is not a set of fields — write fields as `name: …`, one a line"),
    ("name: x\nname: y\nchannels: {}\n", "2:1: name: stands twice, first in line 1 — keep one of the two"),
    (
        "name: x\nchannels: {}\nllm:\n\ttimeout: 3\n",
        "4:1: timeout: is indented with a tab — indent with spaces: YAML takes no tabs there",
    ),
    (
        "name: a: b\n",
        "1:8: name: has a colon inside a text — put the whole text in quotes",
    ),
    (
        "name: @shop\n",
        "1:7: name: begins with a character that YAML keeps for itself — "
        "put a value that begins with @, %, *, & or ` in quotes",
    ),
    (
        "name: 'x\n",
        "1:7: name: has a quote that is never closed — close the quotes",
    ),
    ("name: x\0y\n", "1:8: (file): holds a control character — delete the invisible character in that place"),
    ("name: !!python/none x\nchannels: {}\n", "1:7: name: has a YAML tag — write the plain value, without `!`"),
    ("a: &x {b: 1}\nc:\n  <<: *x\n", "3:3: (file): uses a merge key (<<) — write the fields out"),
    ("{a: 1}: b\n", "1:1: (file): has a field whose name is no word — put braces in quotes"),
    ("a: &x [*x]\n", "1:4: (file): is nested too deep or repeats too much — write it out plainly"),
]


@pytest.mark.parametrize(("text", "line"), YAML_MISTAKES, ids=[repr(text) for text, _ in YAML_MISTAKES])
def test_what_is_no_yaml_of_ours_is_shown_with_its_place_and_remedy(tmp_path: Path, text: str, line: str) -> None:
    assert mistakes(tmp_path, text) == [line]


def test_yaml_that_would_blow_up_is_refused(tmp_path: Path) -> None:
    bomb = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12))
    (line,) = mistakes(tmp_path, bomb)
    assert line.endswith("is nested too deep or repeats too much — write it out plainly")
    (line,) = mistakes(tmp_path, "a: " + "[" * 100_000)
    assert "has a bracket that is not closed" in line


def test_an_alias_is_not_quoted_since_it_may_be_a_secret(tmp_path: Path) -> None:
    (line,) = mistakes(tmp_path, "name: *hushhush\n")
    assert "hushhush" not in line
    assert line.endswith("put a value that begins with @, %, *, & or ` in quotes")


def test_another_encoding_is_named_with_its_place(tmp_path: Path) -> None:
    file = write(tmp_path, "")
    file.write_bytes(b"language: th\nname: " + "ร้าน".encode("cp874"))
    with pytest.raises(TenantError) as caught:
        load_tenant(file, Settings(config_dir=tmp_path))
    assert str(caught.value) == f"{file}:2:7: (file): is not UTF-8 text — save the file as UTF-8 in the editor"


def test_a_file_that_is_too_big_missing_or_no_file_is_named(tmp_path: Path) -> None:
    assert mistakes(tmp_path, SMALL + "#" * 600_000) == [
        "1:1: (file): is larger than 512 KiB — keep long instructions in instructions_file"
    ]
    (tmp_path / "folder.yaml").mkdir()
    for name, what in (("none.yaml", "does not exist — check its path"), ("folder.yaml", "is not a file — put a file")):
        with pytest.raises(TenantError, match=what):
            load_tenant(tmp_path / name, Settings(config_dir=tmp_path))


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("shop.yml", "1:1: (file): does not end in .yaml — rename it to shop.yaml"),
        (
            "My Shop.yaml",
            "1:1: (file): has a name that is no tenant id — rename it to my-shop.yaml: "
            "1 to 64 of a-z, 0-9, _ and -, beginning with a letter or digit",
        ),
        (
            "ร้าน.yaml",
            "1:1: (file): has a name that is no tenant id — rename it to my-shop.yaml: "
            "1 to 64 of a-z, 0-9, _ and -, beginning with a letter or digit",
        ),
    ],
)
def test_a_file_whose_name_is_no_tenant_id_is_refused(tmp_path: Path, name: str, line: str) -> None:
    assert mistakes(tmp_path, SMALL, name) == [line]


class TestTheFilesWeGive:
    def test_the_demo_shop_needs_no_key_and_answers_in_both_languages(self) -> None:
        tenant = load_tenant(REPO / "config" / "tenants" / "demo.yaml", Settings(config_dir=REPO / "config"))
        assert {name: channel.platform for name, channel in tenant.channels.items()} == {"web": "web"}
        assert len(tenant.faq) >= 15
        for faq in tenant.faq:
            thai = [q for q in faq.questions if any("ก" <= c <= "๛" for c in q)]
            assert len(thai) >= 3
            assert len(faq.questions) - len(thai) >= 3
            assert faq.answer.th != faq.answer.en
        hours = next(faq for faq in tenant.faq if "What time do you open?" in faq.questions)
        assert "ร้านเปิดกี่โมง" in hours.questions
        assert "7 am" in hours.answer.within("en")
        questions = [q for faq in tenant.faq for q in faq.questions]
        assert len(questions) == len(set(questions))

    def test_the_demo_shops_channels_work_once_they_are_uncommented(self, tmp_path: Path) -> None:
        text = (REPO / "config" / "tenants" / "demo.yaml").read_text(encoding="utf-8")
        for line in text.splitlines():
            if line.startswith(("  # line-main:", "  # telegram-main:", "  #   ")):
                text = text.replace(line, line.replace("# ", "", 1))
        names = ("DEMO_LINE_SECRET", "DEMO_LINE_TOKEN", "DEMO_TELEGRAM_TOKEN")
        tenant = load(tmp_path, text, variables={name: f"invented-{name}" for name in names})
        assert [channel.platform for channel in tenant.channels.values()] == ["web", "line", "telegram"]

    def test_the_full_example_shows_every_field_and_its_default(self) -> None:
        file = REPO / "config" / "examples" / "full.yaml"
        names = ("LINE_SECRET", "LINE_TOKEN", "TELEGRAM_TOKEN", "TELEGRAM_WEBHOOK_SECRET")
        settings = Settings(config_dir=REPO / "config", variables={f"EXAMPLE_{n}": f"invented-{n}" for n in names})
        full, text = load_tenant(file, settings), file.read_text(encoding="utf-8")
        plain = Tenant.model_validate({"id": "full", "name": "x", "channels": {}})
        assert (full.memory, full.behaviour, full.llm) == (plain.memory, plain.behaviour, plain.llm)
        models = [full, *full.channels.values(), *full.agents.values(), full.llm, full.memory, full.behaviour]
        models += [full.understanding, full.staff, full.replies, *full.faq]  # type: ignore[list-item]
        attachments = [attachment for entry in full.faq for attachment in entry.media]
        models += [*attachments, *(one.sticker for one in attachments if one.sticker)]  # type: ignore[list-item]
        fields = {name for model in models for name in type(model).model_fields} - {"id"}
        assert [name for name in sorted(fields) if f"{name}:" not in text] == []


class TestWhatGoesWithAnAnswer:
    FAQ = SMALL + "faq:\n- questions: menu\n  answer: Here.\n  media:\n"

    def test_takes_pictures_files_and_stickers(self, tmp_path: Path) -> None:
        tenant = load(
            tmp_path,
            self.FAQ + "  - image: https://www.example.com/a.jpg\n  - {file: 'https://203.0.114.9/b.pdf', name: Menu}\n"
            "  - sticker: {package: 446, id: '1988', telegram: CAAC}\nimage_hosts: IMG.example.com\n",
        )
        image, file, sticker = tenant.faq[0].media
        assert (image.image, file.file, file.name) == (
            "https://www.example.com/a.jpg",
            "https://203.0.114.9/b.pdf",
            "Menu",
        )
        assert sticker.sticker is not None
        assert (sticker.sticker.package, sticker.sticker.id, sticker.sticker.telegram) == ("446", "1988", "CAAC")
        assert tenant.image_hosts == ("img.example.com",)

    @pytest.mark.parametrize(
        "address",
        [
            "http://www.example.com/a.jpg",
            "https://localhost/a.jpg",
            "https://127.0.0.1/a.jpg",
            "https://10.1.2.3/a.jpg",
            "https://[::1]/a.jpg",
            "https://2130706433/a.jpg",
            "https://0x7f.1/a.jpg",
            "https://127.1./a.jpg",
            "https://printer.local/a.jpg",
            "https://user@www.example.com/a.jpg",
            "https://www.example.com:port/a.jpg",
            "https://www.example.com/ก.jpg",
            "https://www.example.com/" + "a" * 2000,
        ],
    )
    def test_an_address_that_not_everybody_can_open_is_a_mistake(self, tmp_path: Path, address: str) -> None:
        (found,) = mistakes(tmp_path, self.FAQ + f"  - image: '{address}'\n")
        assert "faq[0].media[0].image: is not an https address that anybody can open" in found

    def test_its_mistakes_are_shown_with_their_place(self, tmp_path: Path) -> None:
        found = mistakes(
            tmp_path,
            self.FAQ + "  - {}\n  - {picture: x, image: 'https://a.example/b', sticker: {package: 1, id: x, sett: 1}}\n"
            "image_hosts: ['https://a.example']\n",
        )
        assert [line.partition(" — ")[0] for line in found] == [
            "7:5: faq[0].media[0]: is not one of image, file and sticker",
            "8:6: faq[0].media[1].picture: is not a known field",
            "8:74: faq[0].media[1].sticker.id: is not a sticker's number",
            "8:77: faq[0].media[1].sticker.sett: is not a known field",
            "9:15: image_hosts[0]: is not a host's name",
        ]
