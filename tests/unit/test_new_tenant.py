"""`chat-chat tenants new`: what it asks, and what comes of the answers."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from config.new_tenant import Answers, CannotWrite, write_new
from config.settings import Settings
from config.shown import Lang
from config.tenants import LineChannel, load_tenant
from gateway.cli import cli
from gateway.cli.asking import asked


def ask(config: Path, answers: str, lang: Lang = "en", given: str | None = None) -> tuple[Result, list[Answers]]:
    """What is asked on a terminal where these lines are typed."""
    made: list[Answers] = []

    @click.command()
    def command() -> None:
        made.append(asked(Settings(config_dir=config), given, {}, lang, True))

    return CliRunner().invoke(command, input=answers), made


def test_the_answers_become_a_shop_that_speaks_line_at_once(tmp_path: Path) -> None:
    typed = "my shop\nmy-shop\nร้านบ้านสวน\n02-555-0100\n9-18\n10:00-20:00\nsunn\nsun,mon\ny\nsecret-1\ntoken-1\ny\n\n"
    result, [answers] = ask(tmp_path, typed)
    assert result.exit_code == 0
    assert result.output.count("Error: ") == 3
    assert 'Error: is not a block of hours — write the opening and closing time, such as "09:00-18:00"' in result.output
    assert "secret-1" not in result.output.replace(typed, "")
    file = write_new(Settings(config_dir=tmp_path), answers)
    tenant = load_tenant(file, Settings(config_dir=tmp_path))
    assert (tenant.name, list(tenant.channels)) == ("ร้านบ้านสวน", ["web", "line-main"])  # Telegram waits for its token
    line = tenant.channels["line-main"]
    assert isinstance(line, LineChannel)
    assert line.channel_secret.get_secret_value() == "secret-1"
    assert "secret-1" not in file.read_text(encoding="utf-8")
    kept = tmp_path / "secrets" / "MY_SHOP_LINE_SECRET"
    assert (kept.read_text(), kept.stat().st_mode & 0o777) == ("secret-1\n", 0o600)
    assert [entry.answer.within("th") for entry in tenant.faq] == [
        "ร้านเปิด 10:00–20:00 น. หยุดวันจันทร์และวันอาทิตย์ค่ะ",
        "โทร 02-555-0100 ได้เลยค่ะ",
    ]
    assert tenant.business_hours == {"tue-sat": ("10:00-20:00",)}
    assert tenant.is_open(datetime(2026, 11, 30, 5, 0, tzinfo=UTC)) is False  # a Monday at noon in Bangkok


def test_it_asks_in_thai(tmp_path: Path) -> None:
    result, [answers] = ask(tmp_path, "ร้าน\n\nx\n\n\nn\nn\n", "th", "shop")
    assert "ชื่อร้านที่ลูกค้าเห็น" in result.output
    assert "ไม่ใช่ช่วงเวลา — เขียนเวลาเปิดและเวลาปิด" in result.output
    assert answers == Answers("shop", "ร้าน", "", "auto", "09:00-18:00", ())


def test_given_answers_are_not_asked_for(tmp_path: Path) -> None:
    made = CliRunner(env={"CONFIG_DIR": str(tmp_path), "LANG": "C"}).invoke(
        cli, ["tenants", "new", "shop", "--name", 'A "quoted": name', "--hours", "18:00-02:00", "--closed", "sun"]
    )
    assert (made.exit_code, made.stderr) == (0, "")
    tenant = load_tenant(tmp_path / "tenants" / "shop.yaml", Settings(config_dir=tmp_path))
    assert (tenant.name, tenant.business_hours) == ('A "quoted": name', {"mon-sat": ("18:00-02:00",)})
    assert (tmp_path / "tenant.schema.json").exists()
    first = (tmp_path / "tenants" / "shop.yaml").read_text(encoding="utf-8").splitlines()[0]
    assert first == "# yaml-language-server: $schema=../tenant.schema.json"


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        ([], 2, "give the shop's id: chat-chat tenants new my-shop"),
        (["shop", "--hours", "9-18"], 1, "--hours: is not a block of hours"),
        (["shop", "--closed", "someday"], 1, "--closed: is not a day or a range of days"),
    ],
)
def test_what_cannot_be_used_is_told(tmp_path: Path, arguments: list[str], code: int, told: str) -> None:
    made = CliRunner(env={"CONFIG_DIR": str(tmp_path), "LANG": "C"}).invoke(cli, ["tenants", "new", *arguments])
    assert made.exit_code == code
    assert told in made.stderr
    assert not (tmp_path / "tenants").exists()


def test_a_secret_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    kept = tmp_path / "secrets" / "SHOP_LINE_SECRET"
    kept.parent.mkdir()
    kept.write_text("mine")
    with pytest.raises(CannotWrite, match="is there already and was not touched"):
        write_new(Settings(config_dir=tmp_path), Answers("shop", secrets={"LINE_SECRET": "x"}))
    assert kept.read_text() == "mine"
    assert not (tmp_path / "tenants" / "shop.yaml").exists()
