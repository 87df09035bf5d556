"""A shop's answers go out as a table and come back."""

from __future__ import annotations

import csv
import io
import textwrap
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from openpyxl import load_workbook

from config.faq_commands import with_faq
from config.faq_table import TableError, csv_of, entries_of, read_table, xlsx_of
from config.settings import Settings
from config.tenant_model import Faq
from config.tenants import load_tenant
from gateway.cli import cli

ENTRIES = [
    Faq.model_validate(entry)
    for entry in (
        {"questions": ["ร้านเปิดกี่โมง", "What time, \"exactly\"?"], "answer": {"th": "9 โมงค่ะ", "en": "At nine.\nSharp."}},
        {"questions": ["=1+1", "+66 2"], "answer": "@shop"},
        {"questions": ["'=x"], "answer": {"th": "-5 องศา"}, "buttons": ["เมนู", "จองโต๊ะ"]},
        {
            "questions": ["menu"],
            "answer": {"en": "Here"},
            "media": [
                {"image": "https://www.example.com/a.jpg", "name": "หน้าร้าน สวย"},
                {"file": "https://www.example.com/menu.pdf"},
                {"sticker": {"package": "446", "id": "1988", "telegram": "CAAC"}},
            ],
        },
    )
]  # fmt: skip
NAMES = "questions, answer, answer_th, answer_en, buttons, media"
FILE = textwrap.dedent("""\
    # our shop
    name: ร้านทดสอบ
    channels:
      line: {platform: line, channel_secret: "${S}", channel_access_token: ${T}}
    faq: # what people ask
      - questions: [old]
        answer: Old answer   # a comment in it
    - bad

    # hours
    business_hours: {mon-fri: "09:00-18:00"}
    """).replace("- bad\n", "")


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_what_goes_out_comes_back(tmp_path: Path, kind: str) -> None:
    file = tmp_path / f"answers.{kind}"
    file.write_bytes(csv_of(ENTRIES) if kind == "csv" else xlsx_of(ENTRIES))
    assert read_table(file) == ENTRIES


def test_no_cell_is_a_formula(tmp_path: Path) -> None:
    raw = csv_of(ENTRIES)
    assert raw.startswith(b"\xef\xbb\xbf")  # by which Excel knows Thai
    cells = [cell for row in csv.reader(io.StringIO(raw.decode("utf-8-sig"), newline="")) for cell in row]
    assert [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t"))] == []
    (tmp_path / "a.xlsx").write_bytes(xlsx_of(ENTRIES))
    sheet = load_workbook(tmp_path / "a.xlsx").worksheets[0]
    assert {cell.data_type for row in sheet.iter_rows() for cell in row if cell.value is not None} == {"s"}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp874"])
@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_tables_as_people_save_them(tmp_path: Path, encoding: str, mark: str) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(f"คำถาม{mark}คำตอบ\r\nจอดรถได้ไหม{mark}ได้ค่ะ\r\n{mark}\r\n".encode(encoding))
    assert read_table(file) == [Faq.model_validate({"questions": ["จอดรถได้ไหม"], "answer": "ได้ค่ะ"})]


@pytest.mark.parametrize(
    ("rows", "wrong"),
    [
        ([], [f"the first row does not name the columns: {NAMES}"]),
        ([["questions", "answer", "color"]], [f"color: no such column; known are {NAMES}"]),
        (
            [
                ["questions", "answer", "media"],
                ["q", "", ""],
                ["", "a", ""],
                ["x", "y", "image http://x"],
                ["z", "y", "pic"],
            ],
            [
                "row 2: has no answer",
                "row 3: has no question",
                "row 4: media is not an https address that anybody can open; write one such as "
                "https://www.example.com/menu.jpg, of at most 2000 characters, as a browser copies it",
                "row 5: its media are not lines such as `image https://… name`, `file https://… name` or "
                "`sticker 446 1988`",
            ],
        ),
        ([["questions", "answer"], ["q", "a"], [" q ", "b"]], ["row 3: asks the same as row 2"]),
    ],
)  # fmt: skip
def test_every_mistake_is_told_with_its_row(rows: list[list[str]], wrong: list[str]) -> None:
    with pytest.raises(TableError) as raised:
        entries_of(rows)
    assert list(raised.value.wrong) == wrong


def test_a_file_that_is_no_table_is_told(tmp_path: Path) -> None:
    for name, raw in (("a.xlsx", b"PK nonsense"), ("b.csv", b"\xff\x00\x81\x8d"), ("c.csv", b"a\x00b,c")):
        (tmp_path / name).write_bytes(raw)
        with pytest.raises(TableError):
            read_table(tmp_path / name)


class Shop:
    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str = FILE) -> None:
        self.file = tmp_path / "config" / "tenants" / "shop.yaml"
        self.file.parent.mkdir(parents=True)
        self.file.write_text(text, encoding="utf-8")
        self.settings = Settings(
            config_dir=tmp_path / "config", data_dir=tmp_path / "data", variables={"S": "a" * 32, "T": "invented"}
        )
        for name, value in (
            ("CONFIG_DIR", tmp_path / "config"),
            ("DATA_DIR", tmp_path / "data"),
            ("S", "a" * 32),
            ("T", "t"),
        ):
            monkeypatch.setenv(name, str(value))

    def run(self, *words: str) -> Result:
        return CliRunner().invoke(cli, ["faq", words[0], "--tenant", "shop", *words[1:]])

    @property
    def asked(self) -> list[str]:
        return [entry.questions[0] for entry in load_tenant(self.file, self.settings).faq]


def test_an_import_changes_the_answers_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = Shop(tmp_path, monkeypatch)
    table = tmp_path / "a.csv"
    table.write_text("questions,answer\nold,New answer\nadded,Yes: {{shop.name}}\n", encoding="utf-8")
    assert (
        shop.run("import", "--dry-run", str(table)).output
        == "2 answers: 2 new or changed, 0 removed\nnothing was written\n"
    )
    assert shop.file.read_text(encoding="utf-8") == FILE
    done = shop.run("import", str(table))
    assert done.exit_code == 0
    assert "2 answers: 2 new or changed, 0 removed" in done.output
    text = shop.file.read_text(encoding="utf-8")
    assert text.startswith(FILE[: FILE.index("faq:")])
    assert text.endswith(FILE[FILE.index("\n# hours") :])
    assert [entry.answer.en for entry in load_tenant(shop.file, shop.settings).faq] == ["New answer", "Yes: ร้านทดสอบ"]
    assert (shop.file.parent / "shop.yaml.before-import").read_text(encoding="utf-8") == FILE

    out = shop.run("export")
    assert "{{shop.name}}" in out.output  # as it is written, not as it is shown
    table.write_text("questions,answer\nonly,One\n", encoding="utf-8")
    assert "1 answers: 1 new or changed, 2 removed" in shop.run("import", "--replace", str(table)).output
    assert shop.asked == ["only"]


def test_what_would_break_the_file_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = Shop(tmp_path, monkeypatch)
    table = tmp_path / "a.csv"
    table.write_text("questions,answer\nq,Call {{shop.phone}}\n", encoding="utf-8")
    refused = shop.run("import", str(table))
    assert refused.exit_code == 1
    assert "q: has a variable that is not known" in refused.output
    assert shop.file.read_text(encoding="utf-8") == FILE
    missing = CliRunner().invoke(cli, ["faq", "export", "--tenant", "nobody"])
    assert (missing.exit_code, missing.output) == (
        1,
        "chat-chat: there is no tenant 'nobody': see `chat-chat tenants list`\n",
    )


@pytest.mark.parametrize(
    "text",
    [
        "name: x\nfaq:\n- questions: a\n  answer: b\nchannels: {}\n",
        "name: x\nfaq: [{questions: a, answer: b},\n  {questions: c, answer: d}\n]\n# end\nchannels: {}\n",
        "name: x\nfaq: []\nchannels: {}",
        "name: x\nchannels: {}\n",
        "name: x\r\nchannels: {}\r\nfaq:\r\n  - {questions: a, answer: b}\r\n",
    ],
)
def test_a_list_is_replaced_however_it_is_written(tmp_path: Path, text: str) -> None:
    written = with_faq(tmp_path / "x.yaml", text, [{"questions": ["q"], "answer": "${HERE}: 'it'\nis"}])
    assert "channels: {}" in written
    assert ("\r\n" in written) == ("\r\n" in text)
