"""`extends: base.yaml`: many shops from one template, and what can go wrong with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from config.settings import Settings
from config.tenant_commands import check_tenants, tenant_schema
from config.tenants import TenantError, load_tenant
from config.yaml_source import parse

REPO = Path(__file__).parents[2]
BASE = """\
language: th
channels: {web: {platform: web}}
memory: {sm_ttl: 60, max_turns: 5}
replies: {welcome: {th: สวัสดี, en: Hello}}
faq:
  - {questions: [เปิดกี่โมง, hours], answer: 9 โมง}
  - {questions: [เบอร์โทร], answer: "${*_PHONE}"}
business_hours: {mon-sun: ["10:00-22:00"]}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "tenants").mkdir()
    (tmp_path / "base.yaml").write_text(BASE, encoding="utf-8")
    return tmp_path


def write(config: Path, text: str, name: str = "shop-1.yaml") -> Path:
    file = config / "tenants" / name
    file.write_text(text, encoding="utf-8")
    return file


def settings(config: Path) -> Settings:
    return Settings(config_dir=config, variables={"SHOP_1_PHONE": "02-555-0101"})


def mistakes(config: Path, text: str) -> list[str]:
    with pytest.raises(TenantError) as caught:
        load_tenant(write(config, text), settings(config))
    return [str(mistake).replace(f"{config}/", "") for mistake in caught.value.mistakes]


class TestATenantOverATemplate:
    def test_takes_what_it_leaves_out_field_by_field(self, config: Path) -> None:
        text = "extends: base.yaml\nname: One\nmemory: {sm_ttl: 90}\nreplies: {welcome: {th: หวัดดี}}\nlanguage:\n"
        tenant = load_tenant(write(config, text), settings(config))
        assert (tenant.name, tenant.language, list(tenant.channels)) == ("One", "th", ["web"])
        assert (tenant.memory.sm_ttl, tenant.memory.max_turns) == (90, 5)
        assert tenant.replies.welcome is not None
        assert (tenant.replies.welcome.th, tenant.replies.welcome.en) == ("หวัดดี", "Hello")

    def test_puts_its_own_questions_first_and_instead_of_the_same_ones(self, config: Path) -> None:
        text = (
            "extends: base.yaml\nname: One\nfaq: [{questions: [ที่อยู่], answer: ซอย 1}, {questions: Hours, answer: 8}]\n"
        )
        text = text.replace("answer: 8", "answer: แปดโมง")
        tenant = load_tenant(write(config, text), settings(config))
        assert [(entry.questions[0], entry.answer.within("th")) for entry in tenant.faq] == [
            ("ที่อยู่", "ซอย 1"),
            ("Hours", "แปดโมง"),
            ("เบอร์โทร", "02-555-0101"),
        ]

    def test_gives_its_hours_whole(self, config: Path) -> None:
        text = 'extends: base.yaml\nname: One\nbusiness_hours: {tue-sun: ["10:00-20:00"]}\n'
        assert load_tenant(write(config, text), settings(config)).business_hours == {"tue-sun": ("10:00-20:00",)}

    def test_may_have_the_template_beside_it_under_a_name_that_is_no_tenants(self, config: Path) -> None:
        write(config, BASE, "_branch.yaml")
        write(config, "extends: _branch.yaml\nname: One\n")
        outcome = check_tenants(settings(config))
        assert outcome == (f"{config}/tenants/shop-1.yaml: ok", 0)

    def test_templates_may_extend_templates(self, config: Path) -> None:
        (config / "city.yaml").write_text("extends: base.yaml\nmemory: {max_turns: 7}\n")
        tenant = load_tenant(write(config, "extends: city.yaml\nname: One\n"), settings(config))
        assert (tenant.memory.sm_ttl, tenant.memory.max_turns) == (60, 7)


class TestAMistakeInATemplate:
    def test_is_shown_in_the_templates_file(self, config: Path) -> None:
        (config / "base.yaml").write_text(BASE.replace("sm_ttl: 60", "sm_tll: 60"), encoding="utf-8")
        assert mistakes(config, "extends: base.yaml\nname: One\nmemory: {max_turns: x}\n") == [
            "tenants/shop-1.yaml:3:21: memory.max_turns: should be a whole number — write digits alone, such as 10",
            "base.yaml:3:10: memory.sm_tll: is not a known field — did you mean sm_ttl?",
        ]

    def test_in_an_answer_that_moved_down_is_shown_where_it_is_written(self, config: Path) -> None:
        (config / "base.yaml").write_text(BASE.replace("answer: 9 โมง", "anser: 9 โมง"), encoding="utf-8")
        text = "extends: base.yaml\nname: One\nfaq: [{questions: [ที่อยู่], answer: ซอย 1}]\n"
        assert mistakes(config, text) == ["base.yaml:6:38: faq[1].anser: is not a known field — did you mean answer?"]

    def test_is_told_once_for_all_that_extend_it(self, config: Path) -> None:
        (config / "base.yaml").write_text(BASE.replace("language: th", "language: thai"), encoding="utf-8")
        for name in ("shop-1.yaml", "shop-2.yaml"):
            write(config, "extends: base.yaml\nname: One\nfaq: []\n", name)
        variables = {"SHOP_1_PHONE": "1", "SHOP_2_PHONE": "2"}
        lines = check_tenants(Settings(config_dir=config, variables=variables)).text.replace(f"{config}/", "")
        assert lines.splitlines() == [
            "base.yaml:1:11: language: is none of th, en, auto — did you mean th?",
            "    1 | language: thai",
            "      |           ^",
            "tenants/shop-2.yaml: the mistakes of base.yaml, see above",
            "1 mistake in 2 of 2 files",
        ]

    def test_that_is_no_yaml_is_shown_in_the_templates_file(self, config: Path) -> None:
        (config / "base.yaml").write_text("language: th\n  memory: {}\n")
        assert mistakes(config, "extends: base.yaml\nname: One\n") == [
            "base.yaml:2:3: memory: stands further in than line 1, which is a whole field already — "
            "begin it in the same column as line 1"
        ]


class TestATemplateThatCannotBeHad:
    def test_a_missing_one_is_told_with_the_nearest(self, config: Path) -> None:
        assert mistakes(config, "extends: bsae.yaml\nname: One\n") == [
            "tenants/shop-1.yaml:1:10: extends: names a template that does not exist — did you mean base.yaml?"
        ]
        assert mistakes(config, "name: One\nextends: other/none.yml\n") == [
            "tenants/shop-1.yaml:2:10: extends: names a template that does not exist — "
            "name a file beside this one or in the config folder, such as base.yaml"
        ]

    def test_a_circle_is_told_with_its_way(self, config: Path) -> None:
        (config / "base.yaml").write_text("extends: city.yaml\n")
        (config / "city.yaml").write_text("extends: base.yaml\n")
        assert mistakes(config, "extends: base.yaml\nname: One\n") == [
            "city.yaml:1:10: extends: leads back to itself: base.yaml → city.yaml → base.yaml — "
            "remove it from one of these files"
        ]
        assert mistakes(config, "extends: shop-1.yaml\nname: One\n") == [
            "tenants/shop-1.yaml:1:10: extends: leads back to itself: shop-1.yaml → shop-1.yaml — "
            "remove it from one of these files"
        ]

    def test_a_tower_of_templates_ends_somewhere(self, config: Path) -> None:
        for number in range(9):
            (config / f"t{number}.yaml").write_text(f"extends: t{number + 1}.yaml\n")
        (line,) = mistakes(config, "extends: t0.yaml\nname: One\n")
        assert line.startswith("t4.yaml:1:10: extends: is the template of a template over 5 levels")

    @pytest.mark.parametrize("name", ["../../outside.yaml", "link.yaml", "/etc/hostname"])
    def test_none_leads_out_of_the_config_folder(self, tmp_path: Path, name: str) -> None:
        config = tmp_path / "config"
        (config / "tenants").mkdir(parents=True)
        (tmp_path / "outside.yaml").write_text(BASE, encoding="utf-8")
        (config / "link.yaml").symlink_to(tmp_path / "outside.yaml")
        (line,) = mistakes(config, f"extends: {name}\nname: One\n")
        assert line.startswith("tenants/shop-1.yaml:1:10: extends: names a file outside the config folder — ")

    def test_what_is_no_name_is_told(self, config: Path) -> None:
        for value in ("[a]", "3", '""'):
            (line,) = mistakes(config, f"extends: {value}\nname: One\n")
            assert line.startswith("tenants/shop-1.yaml:1:10: extends: names no file — ")


class TestTheExamples:
    @pytest.mark.parametrize("name", ["cafe", "clinic", "live-shop", "hotel"])
    def test_a_shop_works_as_it_is_and_with_its_channels(self, tmp_path: Path, name: str) -> None:
        text = (REPO / "config" / "examples" / f"{name}.yaml").read_text(encoding="utf-8")
        (tmp_path / "tenants").mkdir()
        alone = load_tenant(write(tmp_path, text, "shop-1.yaml"), Settings(config_dir=tmp_path))
        assert list(alone.channels) == ["web"]
        assert len(alone.faq) >= 4
        whole = []
        for line in text.splitlines():
            commented = line.startswith(("  # line-main:", "  # telegram-main:", "  #   "))
            whole.append(
                line.replace("# ", "", 1) if commented else line.removeprefix("# ") if "staff:" in line else line
            )
        whole = [line.removeprefix("#") if line.startswith("#   ch") else line for line in whole]
        names = ("LINE_SECRET", "LINE_TOKEN", "TELEGRAM_TOKEN")
        variables = {f"SHOP_1_{name}": f"invented-{name}" for name in names}
        tenant = load_tenant(
            write(tmp_path, "\n".join(whole), "shop-1.yaml"), Settings(config_dir=tmp_path, variables=variables)
        )
        assert {"web", "line-main"} <= set(tenant.channels)

    def test_twenty_branches_come_from_one_template(self) -> None:
        folder = REPO / "config" / "examples" / "agency"
        files = sorted((folder / "tenants").glob("*.yaml"))
        tenants = [load_tenant(file, Settings(config_dir=folder)) for file in files]
        assert len(tenants) == 20
        assert len({tenant.name for tenant in tenants}) == 20
        assert all(len(tenant.faq) == 5 and tenant.reply("welcome", "en").endswith("anything.") for tenant in tenants)


def test_the_schema_takes_every_file_that_comes_with_the_bot() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(tenant_schema().text)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    examples = REPO / "config" / "examples"
    files = [
        REPO / "config" / "tenants" / "demo.yaml",
        *examples.glob("*.yaml"),
        *examples.glob("agency/tenants/*.yaml"),
    ]
    wrong = []
    for file in files:
        document = parse(file, file.read_text(encoding="utf-8"))
        for error in validator.iter_errors(document.data):
            ours = list(error.absolute_path) or error.message  # a template brings the channels of those that extend it
            if not (document.data.get("extends") and "'channels' is a required" in error.message):
                wrong.append((file.name, ours))
    assert len(files) >= 25
    assert wrong == []
    errors = [error.message for error in validator.iter_errors({"name": "x", "channels": {}, "languag": "th"})]
    assert errors == ["Additional properties are not allowed ('languag' was unexpected)"]
