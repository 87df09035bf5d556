"""How answers look to a customer; the examples beside this file are meant to be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.rendering import (
    TelegramPiece,
    pack_line,
    render_line,
    render_telegram,
    render_terminal,
    truncate_graphemes,
    utf16_len,
)

EXAMPLES = sorted((Path(__file__).parent / "rendering_examples").glob("*.txt"))
SECTIONS = ("markdown", "line", "telegram", "entities", "terminal")


def sections(path: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    rest = path.read_text(encoding="utf-8")
    for name in reversed(SECTIONS):
        rest, _, found[name] = rest.partition(f"=== {name}\n")
        found[name] = found[name].removesuffix("\n")
    return found


def shown_entities(piece: TelegramPiece) -> list[str]:
    """`bold ลาเต้`, a line each, to be read."""
    raw = piece.text.encode("utf-16-le")
    lines = []
    for entity in piece.entities:
        part = raw[2 * entity["offset"] : 2 * (entity["offset"] + entity["length"])].decode("utf-16-le")
        detail = entity.get("url") or entity.get("language")
        lines.append(f"{entity['type']}{f'({detail})' if detail else ''} {json.dumps(part, ensure_ascii=False)}")
    return lines


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_answer_looks_as_the_example_shows(path: Path) -> None:
    expected = sections(path)
    source = expected.pop("markdown")
    [bubble] = render_line(source)
    [message] = render_telegram(source)
    actual = {
        "line": bubble,
        "telegram": message.text,
        "entities": "\n".join(shown_entities(message)),
        "terminal": render_terminal(source, 48, False),
    }
    assert expected == actual


def test_there_are_examples() -> None:
    assert [path.stem for path in EXAMPLES] == ["cafe_en", "cafe_th", "code", "nested_lists", "tables"]


@pytest.mark.parametrize(
    "nothing",
    [
        "",
        " \n\t",
        "\u200b\ufeff\u2060",
        "---",
        "- \n- ",
        "> ",
        "**",
        "```\n```",
        "#",
        "\x00\x1b",
        "&#x200b;",
        "\u3164",
        "* * *",
    ],
)
def test_nothing_to_see_is_no_message(nothing: str) -> None:
    shown = (render_line(nothing), render_telegram(nothing), render_terminal(nothing, 80, True))
    assert (shown[0], len(shown[1])) == (["**"], 1) if nothing == "**" else shown == ([], [], "")


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ('**"ลาเต้"**ค่ะ', '"ลาเต้"ค่ะ'),
        ("เมนู**(ใหม่)**นะคะ", "เมนู(ใหม่)นะคะ"),
        ("**ลาเต้ ☕**ค่ะ", "ลาเต้ ☕ค่ะ"),
        ("ขนาด 30*20*15 ซม.", "ขนาด 30*20*15 ซม."),
        ("2**8**2", "2**8**2"),
        ("ไฟล์_ราคา_ใหม่", "ไฟล์_ราคา_ใหม่"),
        ("snake_case_name", "snake_case_name"),
        ("ลด * ทุกเมนู *", "ลด * ทุกเมนู *"),
        ("**ไม่ปิด", "**ไม่ปิด"),
        ("{name} {{x}} }", "{name} {{x}} }"),
        ("<b>a</b> <!-- b -->", "<b>a</b> <!-- b -->"),
        ("a<br>b", "a\nb"),
        ("a\nb\r\nc", "a\nb\nc"),
        ("Title\n---\nText", "Title\n\n──────────\n\nText"),
        ("[1]: https://example.com/x", "[1]: https://example.com/x"),
        ("    indented *text*", "indented text"),
        ("```ลาเต้ 65 บาท\nเย็น", "ลาเต้ 65 บาท\nเย็น"),
        ("```hello", "hello"),
        ("~~65~~ 55", "~65~ 55"),
        ("[ลาเต้](65บาท)", "ลาเต้ (65บาท)"),
        ("[x](https://example.com/a_(b))", "x (https://example.com/a_(b))"),
        ('[x](https://example.com "the shop")', "x (https://example.com) (the shop)"),
        ("[](https://example.com)", "https://example.com"),
        ("<https://example.com>", "https://example.com"),
        ("[example.com](https://example.com/)", "example.com"),
        ("![](https://example.com/a.png)", "https://example.com/a.png"),
        ("[run](javascript:alert)", "[run](javascript:alert)"),
        ("a\x00b\x1b[31mc\x9b\ud800", "ab[31mc\ufffd"),
        ("\ud83d\ude0a", "😊"),
        ("3. c\n3. c\n5. e", "3. c\n4. c\n5. e"),
        ("1. a\n2. b\n\n1. c", "1. a\n2. b\n\n1. c"),
        ("|a|b|\n|-|-|\n|1|2|3|", "a — b\n• 1 — 2 · 3"),
        ("|a|b|c|\n|-|-|-|", "a — b — c"),
        ("|a|b|c|\n|-|-|-|\n|1||3|", "a — b\n• 1 — c:\u00a03"),
        ("# a\nb\n## **c**\n#\n- # d", "■ a\nb\n\n■ c\n\n• d"),
        ("> a\n\nb", "> a\n\nb"),
        ("> a\nb", "> a\nb"),
        ("- > a\n  b", "• > a\n  b"),
        ("- a\n\n  b\n- c", "• a\n\n  b\n• c"),
        (">" * 30 + "a", "> " * 8 + ">" * 18 + "a"),
    ],
)
def test_line_shows(source: str, text: str) -> None:
    assert [text] == render_line(source)


@pytest.mark.parametrize(
    ("source", "text", "entities"),
    [
        ("😊**ข**", "😊ข", ["bold"]),
        ("**a `b` c**", "a b c", ["bold", "code", "bold"]),
        ("[a `b`](https://example.com)", "a b", ["text_link"]),
        ("***a** b*", "a b", ["italic", "bold"]),
        ("# a **b**", "a b", ["bold"]),
        ("> a\n> > b", "a\n> b", ["blockquote"]),
        ("> ```\n> a\n> ```", "a", ["blockquote", "pre"]),
        ("[a](mailto:a@example.com)", "a (a@example.com)", []),
        ("[a](http://localhost)", "a (http://localhost)", []),
        (f"[a](https://example.com/{'x' * 2000})", f"a (https://example.com/{'x' * 2000})", []),
        ("** a**", "** a**", []),
    ],
)
def test_telegram_shows(source: str, text: str, entities: list[str]) -> None:
    [piece] = render_telegram(source)
    assert (text, entities) == (piece.text, [entity["type"] for entity in piece.entities])


def test_telegram_offsets_count_utf16_units() -> None:
    [piece] = render_telegram("😊 **ลาเต้ 😊** [x](https://example.com/y)\n\n```py\nz\n```")
    assert piece.entities == [
        {"type": "bold", "offset": 3, "length": 8},
        {"type": "text_link", "offset": 12, "length": 1, "url": "https://example.com/y"},
        {"type": "pre", "offset": 15, "length": 1, "language": "py"},
    ]


@pytest.mark.parametrize(
    ("source", "limit", "pieces"),
    [
        ("one two\n\nthree four", 16, ["one two", "three four"]),
        ("one two three\nfour five", 20, ["one two three", "four five"]),
        ("It is open. Come and see us", 20, ["It is open.", "Come and see us"]),
        ("เปิดแล้วค่ะ มาได้เลย นะ", 20, ["เปิดแล้วค่ะ", "มาได้เลย นะ"]),
        ("ร้านเปิดทุกวันครับแวะมาได้เลย", 24, ["ร้านเปิดทุกวันครับ", "แวะมาได้เลย"]),
        ("see you at the corner", 12, ["see you at", "the corner"]),
        ("ที่ที่ที่ที่", 4, ["ที่", "ที่", "ที่", "ที่"]),
        ("เกเกเก", 3, ["เก", "เก", "เก"]),
        ("น้ำน้ำ", 5, ["น้ำ", "น้ำ"]),
        ("👩‍👩‍👧‍👦👩‍👩‍👧‍👦", 12, ["👩‍👩‍👧‍👦", "👩‍👩‍👧‍👦"]),
        ("🇹🇭🇯🇵", 6, ["🇹🇭", "🇯🇵"]),
        ("a 1. item and more", 10, ["a 1. item", "and more"]),
        ("😊" * 3, 5, ["😊😊", "😊"]),
        ("visit https://example.com/a now", 24, ["visit", "https://example.com/a", "now"]),
        ("x" * 25, 10, ["x" * 10, "x" * 10, "x" * 5]),
        ("e" + "\u0301" * 9, 5, ["e" + "\u0301" * 4, "\u0301" * 5]),
    ],
)
def test_a_long_answer_is_cut_where_a_reader_pauses(source: str, limit: int, pieces: list[str]) -> None:
    assert pieces == render_line(source, limit)


def test_the_platforms_limits_are_the_defaults() -> None:
    assert [utf16_len(piece.text) for piece in render_telegram("😊" * 2500)] == [4096, 904]
    assert [utf16_len(piece) for piece in render_line("😊" * 3000)] == [5000, 1000]


def test_an_entity_that_is_cut_goes_on_in_the_next_message() -> None:
    first, second = render_telegram("**one two three**", 8)
    assert TelegramPiece("one two", [{"type": "bold", "offset": 0, "length": 7}]) == first
    assert TelegramPiece("three", [{"type": "bold", "offset": 0, "length": 5}]) == second


def test_a_message_with_too_many_entities_is_cut_before_they_are_ignored() -> None:
    pieces = render_telegram(" ".join(["**b**"] * 250))
    assert [len(piece.entities) for piece in pieces] == [100, 100, 50]
    assert " ".join(["b"] * 250) == " ".join(piece.text for piece in pieces)


def test_long_addresses_do_not_make_a_request_too_large() -> None:
    pieces = render_telegram(" ".join([f"[b](https://example.com/{'x' * 1900})"] * 50))
    sizes = [len(json.dumps({"text": piece.text, "entities": piece.entities})) for piece in pieces]
    assert max(sizes) < 16_384
    assert sum(len(piece.entities) for piece in pieces) == 50


def test_bubbles_are_packed_five_to_a_call() -> None:
    assert pack_line(["1", "2", "3", "4", "5", "6"]) == [["1", "2", "3", "4", "5"], ["6"]]
    assert pack_line([]) == []


def test_the_terminal_shows_styles_as_colours() -> None:
    assert (
        render_terminal("**a** *b* ~~c~~ `d`", None, True)
        == "\x1b[1ma\x1b[0m \x1b[3mb\x1b[0m \x1b[9mc\x1b[0m \x1b[36md\x1b[0m"
    )
    assert render_terminal("**a\nb**", None, True) == "\x1b[1ma\x1b[0m\n\x1b[1mb\x1b[0m"


@pytest.mark.parametrize(
    ("source", "width", "text"),
    [
        ("- one two three four", 12, "• one two\n  three four"),
        ("12. one two three", 10, "12. one\n    two\n    three"),
        ("> one two three", 10, "│ one two\n│ three"),
        ("ที่ที่ที่ที่", 3, "ที่ที่ที่\nที่"),
        ("```\nvery long code line\n```", 8, "very long code line"),
        ("see https://example.com/long now", 10, "see\nhttps://example.com/long\nnow"),
        ("|a|b|\n|-|-|\n|long cell|long cell|", 12, "a — b\n• long cell\n  — long\n  cell"),
    ],
)
def test_terminal_lines_are_wrapped_under_their_text(source: str, width: int, text: str) -> None:
    assert text == render_terminal(source, width, False)


@pytest.mark.parametrize(
    ("label", "n", "cut"),
    [
        ("ลาเต้เย็น", 20, "ลาเต้เย็น"),
        ("น้ำน้ำน้ำ", 2, "น้ำ…"),
        ("กาแฟเย็น", 4, "กา…"),
        ("👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦", 2, "👩‍👩‍👧‍👦…"),
        ("two\nlines  here", 20, "two lines here"),
        ("order now please", 7, "order…"),
        ("abc", 1, "…"),
        ("abc", 0, ""),
        ("\x00", 5, ""),
    ],
)
def test_a_label_is_cut_between_graphemes(label: str, n: int, cut: str) -> None:
    assert cut == truncate_graphemes(label, n)


def test_utf16_length_counts_code_units() -> None:
    assert (utf16_len("a"), utf16_len("😊"), utf16_len("น้ำ")) == (1, 2, 3)
