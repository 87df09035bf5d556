from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Literal

import pytest

from config.new_tenant import Answers
from config.settings import Settings
from config.tenant_commands import check_tenants, list_tenants, new_tenant, tenant_schema
from config.tenants import load_tenant

KINDS = ("LINE_SECRET", "LINE_TOKEN", "TELEGRAM_TOKEN")
GOOD = "name: Shop\nchannels: {web: {platform: web}}\n"
BOT = "name: Shop\nchannels: {tg: {platform: telegram, bot_token: '1:x', mode: polling}}\n"


def settings(config: Path, **files: str) -> Settings:
    (config / "tenants").mkdir(exist_ok=True)
    for name, text in files.items():
        (config / "tenants" / f"{name}.yaml").write_text(text, encoding="utf-8")
    return Settings(config_dir=config)


def test_list_shows_every_file_and_the_first_mistake_of_a_wrong_one(tmp_path: Path) -> None:
    outcome = list_tenants(settings(tmp_path, alpha=GOOD, be="name: x\n"))
    assert outcome.text.splitlines() == [
        "alpha  ok     Shop: web (web)",
        f"be     error  {tmp_path}/tenants/be.yaml:1:1: channels: is missing — add channels: …",
    ]
    assert outcome.code == 0


def test_check_says_ok_and_exits_0(tmp_path: Path) -> None:
    assert check_tenants(settings(tmp_path, alpha=GOOD)) == (f"{tmp_path}/tenants/alpha.yaml: ok", 0)


def test_check_shows_every_mistake_and_exits_1(tmp_path: Path) -> None:
    outcome = check_tenants(settings(tmp_path, alpha=GOOD, beta=GOOD + "languag: th\nllm: {timeout: x}\n"))
    assert outcome.text.splitlines() == [
        f"{tmp_path}/tenants/alpha.yaml: ok",
        f"{tmp_path}/tenants/beta.yaml:3:1: languag: is not a known field — did you mean language?",
        "    3 | languag: th",
        "      | ^",
        f"{tmp_path}/tenants/beta.yaml:4:16: llm.timeout: should be a number — write a number, such as 0.5",
        "    4 | llm: {timeout: x}",
        "      |                ^",
        "2 mistakes in 1 of 2 files",
    ]
    assert outcome.code == 1


def test_check_and_list_go_on_past_links_in_a_circle(tmp_path: Path) -> None:
    given = settings(tmp_path, alpha=GOOD)
    circle = tmp_path / "tenants" / "circle.yaml"
    circle.symlink_to(circle)
    outcome = check_tenants(given)
    assert outcome.text.splitlines() == [
        f"{tmp_path}/tenants/alpha.yaml: ok",
        f"{circle}:1:1: (file): does not exist — check its path",
        "1 mistake in 1 of 2 files",
    ]
    assert [line.split()[1] for line in list_tenants(given).text.splitlines()] == ["ok", "error"]


def test_check_sees_a_token_that_two_tenants_share(tmp_path: Path) -> None:
    outcome = check_tenants(settings(tmp_path, alpha=BOT, beta=BOT))
    assert outcome.text.splitlines() == [
        f"{tmp_path}/tenants/alpha.yaml: ok",
        f"{tmp_path}/tenants/beta.yaml:2:12: channels.tg: has the same token as channel tg of tenant alpha — "
        "give each tenant its own channel, or remove it from one of the two",
        "    2 | channels: {tg: {platform: telegram, bot_token: •••••, mode: polling}}",
        "      |            ^",
        "1 mistake in 1 of 2 files",
    ]
    assert outcome.code == 1


def test_check_takes_files_from_anywhere(tmp_path: Path) -> None:
    elsewhere = tmp_path / "draft.yaml"
    elsewhere.write_text(GOOD)
    missing = tmp_path / "none.yaml"
    outcome = check_tenants(settings(tmp_path, alpha="nothing"), [elsewhere, missing])
    assert outcome.text.splitlines() == [
        f"{elsewhere}: ok",
        f"{missing}:1:1: (file): does not exist — check its path",
        "1 mistake in 1 of 2 files",
    ]
    assert outcome.code == 1


def test_without_any_file_the_way_to_a_first_one_is_shown(tmp_path: Path) -> None:
    text = f"no tenant file in {tmp_path}/tenants: `chat-chat tenants new ID` writes one"
    assert check_tenants(Settings(config_dir=tmp_path)) == (text, 1)
    assert list_tenants(Settings(config_dir=tmp_path)) == (text, 0)


def test_new_writes_a_file_that_works(tmp_path: Path) -> None:
    file = tmp_path / "tenants" / "my-shop.yaml"
    outcome = new_tenant(Settings(config_dir=tmp_path), Answers("my-shop"))
    assert outcome.text.splitlines()[:2] == [f"wrote {file}; it works as it is:", "  chat-chat chat --tenant my-shop"]
    assert outcome.code == 0
    assert load_tenant(file, Settings(config_dir=tmp_path)).faq[0].questions[0] == "ร้านเปิดกี่โมง"
    assert "${MY_SHOP_LINE_SECRET}" in file.read_text(encoding="utf-8")


@pytest.mark.parametrize("tenant_id", ["007", "no", "null", "a-_", "1-shop"])
def test_new_copes_with_ids_that_yaml_would_read_otherwise(tmp_path: Path, tenant_id: str) -> None:
    assert new_tenant(Settings(config_dir=tmp_path), Answers(tenant_id)).code == 0
    file = tmp_path / "tenants" / f"{tenant_id}.yaml"
    text = re.sub(r"(?m)^  # (?=  |[a-z-]+:$)", "  ", file.read_text(encoding="utf-8"))
    file.write_text(text, encoding="utf-8")
    names = [f"{prefix}{tenant_id.upper().replace('-', '_')}" for prefix in ("", "SHOP_")]
    secrets = {f"{name}_{kind}": f"invented-{kind}" for name in names for kind in KINDS}
    tenant = load_tenant(file, Settings(config_dir=tmp_path, variables=secrets))
    assert (tenant.name, list(tenant.channels)) == (tenant_id, ["web", "line-main", "telegram-main"])


def test_new_never_overwrites(tmp_path: Path) -> None:
    outcome = new_tenant(settings(tmp_path, shop=GOOD), Answers("shop"))
    file = tmp_path / "tenants" / "shop.yaml"
    assert outcome == (f"{file} is there already and was not touched: choose another id, or edit that file", 1)
    assert file.read_text() == GOOD


def test_new_refuses_what_is_no_tenant_id(tmp_path: Path) -> None:
    for wrong in ("../x", "", "Shop", "a" * 65, "a\0b", "ร้าน", "a/b"):
        outcome = new_tenant(Settings(config_dir=tmp_path), Answers(wrong))
        assert outcome.code == 1
        assert "is no tenant id: use 1 to 64 of a-z, 0-9, _ and -" in outcome.text
    assert not (tmp_path / "tenants").exists()


def test_new_says_when_it_cannot_write(tmp_path: Path) -> None:
    (tmp_path / "tenants").write_text("in the way")
    outcome = new_tenant(Settings(config_dir=tmp_path), Answers("shop"))
    assert outcome.code == 1
    assert outcome.text.endswith(f"let this user write to {tmp_path / 'tenants'}")


def test_schema_describes_a_file_as_it_is_written() -> None:
    schema = json.loads(tenant_schema().text)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["required"] == ["name", "channels"]
    assert schema["additionalProperties"] is False
    assert "id" not in schema["properties"]
    line = schema["$defs"]["LineChannel"]["properties"]
    assert line["channel_secret"]["type"] == "string"
    assert line["platform"]["const"] == "line"
    placeholder = {"type": "string", "pattern": r"^\$\{[A-Za-z_*][A-Za-z0-9_*]*\}$"}
    assert line["allow_push"]["anyOf"] == [{"type": "boolean"}, placeholder]
    assert schema["$defs"]["Text"]["anyOf"][0] == {"type": "string"}


def test_check_takes_a_shop_by_its_id_and_says_of_one_that_is_not_there_that_it_is_not(tmp_path: Path) -> None:
    given = settings(tmp_path, alpha=GOOD, beta=GOOD + "languag: th\n")
    assert check_tenants(given, [Path("alpha")]) == (f"{tmp_path}/tenants/alpha.yaml: ok", 0)
    assert check_tenants(given, [Path("gamma")]).text.splitlines()[0] == (
        "gamma:1:1: (file): does not exist — check its path"
    )


@pytest.mark.parametrize("lang", ["en", "th"])
def test_the_command_that_new_names_can_be_pasted_where_a_folder_has_a_space(
    tmp_path: Path, lang: Literal["en", "th"]
) -> None:
    config = tmp_path / "con fig"
    config.mkdir()
    text = new_tenant(settings(config), Answers("my-shop"), lang).text
    assert f"tenants check '{config}/tenants/my-shop.yaml'" in text.splitlines()[-1]
