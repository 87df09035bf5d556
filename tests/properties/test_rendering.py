"""Whatever a model writes: nothing lost, nothing too long, nothing malformed."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any
from urllib.parse import unquote

import pytest
import regex
import wcwidth
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gateway.rendering import (
    TelegramPiece,
    pack_line,
    render_line,
    render_telegram,
    render_terminal,
    truncate_graphemes,
    utf16_len,
)
from gateway.rendering.growing import so_far

relaxed = settings(deadline=None)  # the machine may be busy

LEGAL = {"bold", "italic", "underline", "strikethrough", "code", "pre", "text_link", "blockquote"}
FAMILY = "👩‍👩‍👧‍👦"

words = st.sampled_from(
    ["ลาเต้", "น้ำแข็ง", "เที่ยวแก้", "ค่ะ", "นะคะ ", "ครับ", "coffee", "Z", FAMILY, "🇹🇭🇯🇵", "👍🏽", "1️⃣", "q\u0301\u0302", "30"]
)
# No `&`, and no word `br`: references and that tag stand for other characters.
marks = st.sampled_from(
    [
        *"*_`~[]()<>#|-+!\\\n\n \t.:=\"'{}",
        "**",
        "~~",
        "](",
        "![",
        "```",
        "\n\n",
        "\n> ",
        "\n- ",
        "\n  ",
        "\n    ",
        "1. ",
        "\n|a|\n|-|\n|",
        "---",
        "](https://x.io/",
        "\u200b",
        "\u200d",
        "\ufe0f",
        "\u0e31",
    ]
)
noise = st.lists(st.one_of(words, marks), max_size=60).map("".join)
anything = st.text(max_size=200)


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Markdown as models write it, with noise for words now and then."""
    inline = st.lists(st.one_of(words, words, noise.map(lambda text: text[:20])), min_size=1, max_size=8).map(" ".join)
    plain = st.lists(words, min_size=1, max_size=12).map("".join)
    shapes = st.sampled_from(
        [
            "{}",
            "# {}",
            "**{}**",
            "- {}\n- *{}*\n  - {}",
            "3. {}\n4. {}\n\n   {}",
            "> {}\n> > **{}**\n\n{}",
            "| {} | {} |\n|---|--:|\n| {} | {} | {} |",
            "```python\n{}\n  {}\n```",
            "[{}](https://x.io/{}) ~~{}~~",
            "**{} `{}` {}**",
            "- > {}\n  > ```\n  > {}\n  > ```",
            "---\n{}",
            "**_{}_** `{}` <b>{}</b>",
        ]
    )
    blocks = []
    for shape in draw(st.lists(shapes, max_size=8)):
        texts = [draw(st.one_of(plain, inline)) for _ in range(shape.count("{}"))]
        blocks.append(shape.format(*texts))
    return draw(st.sampled_from(["\n\n", "\n"])).join(blocks)


markdown = st.one_of(documents(), noise, anything)
limits = st.one_of(st.integers(2, 40), st.just(4096))


def sliced(piece: TelegramPiece, entity: dict[str, Any]) -> str:
    raw = piece.text.encode("utf-16-le")
    start, end = 2 * entity["offset"], 2 * (entity["offset"] + entity["length"])
    return raw[start:end].decode("utf-16-le")  # raises where a surrogate pair is cut


def letters(text: str) -> Counter[str]:
    """What no markup is made of: letters, their marks, emoji; not digits, which number lists."""
    return Counter(regex.findall(r"[\p{L}\p{M}\p{So}--\p{Variation_Selector}]", text, flags=regex.V1))


def graphemes(text: str) -> Counter[str]:
    return Counter(cluster for cluster in regex.findall(r"\X", text) if not cluster.isspace())


@relaxed
@given(markdown, st.integers(0, 400))
def test_an_answer_that_is_not_whole_yet_shows_no_letter_that_was_not_written(source: str, end: int) -> None:
    for piece in render_telegram(so_far(source[:end])):
        assert 0 < utf16_len(piece.text) <= 4096
        for entity in piece.entities:
            sliced(piece, entity)
        assert Counter(regex.findall(r"\p{L}", piece.text)) <= Counter(regex.findall(r"\p{L}", source[:end]))


@relaxed
@given(markdown, limits)
@example("a" + "\u0301" * 100, 10)
@example("เ" * 30, 2)
def test_telegram_pieces_are_within_every_limit(source: str, limit: int) -> None:
    for piece in render_telegram(source, limit):
        assert 0 < utf16_len(piece.text) <= limit
        assert regex.search(r"[^\s\u200b\u200d\ufeff]", piece.text)
        assert piece.text == piece.text.strip() or regex.search(r"\s\p{M}|\A\s", piece.text)
        assert len(piece.entities) <= 100
        assert len(piece.text.encode()) + len(json.dumps(piece.entities)) < 28_000


@relaxed
@given(markdown, limits)
@example("**ลาเต้ `น้ำแข็งค่ะนะคะ ` ลาเต้**", 14)
def test_telegram_entities_are_legal_and_nest(source: str, limit: int) -> None:
    for piece in render_telegram(source, limit):
        size = utf16_len(piece.text)
        ranges = [(entity["offset"], entity["offset"] + entity["length"], entity["type"]) for entity in piece.entities]
        for entity, (start, end, kind) in zip(piece.entities, ranges, strict=True):
            assert kind in LEGAL
            assert 0 <= start < end <= size
            assert sliced(piece, entity)
            assert ("url" in entity) == (kind == "text_link")
        for at, (start, end, kind) in enumerate(ranges):
            for other_start, other_end, other in ranges[at + 1 :]:
                if other_start < end and start < other_end:
                    assert start <= other_start
                    assert other_end <= end
                    assert kind not in ("code", "pre")
                    assert other not in ("code", "pre") or kind == "blockquote"
                    assert kind != other


@relaxed
@given(markdown, limits)
def test_line_bubbles_are_within_every_limit(source: str, limit: int) -> None:
    pieces = render_line(source, limit)
    for piece in pieces:
        assert 0 < utf16_len(piece) <= limit
        assert regex.search(r"[^\s\u200b\u200d\ufeff]", piece)
    packed = pack_line(pieces)
    assert [piece for call in packed for piece in call] == pieces
    assert all(1 <= len(call) <= 5 for call in packed)


@relaxed
@given(st.one_of(documents(), noise), limits)
def test_no_letter_of_the_source_is_lost(source: str, limit: int) -> None:
    telegram = render_telegram(source, limit)
    entities = [entity for piece in telegram for entity in piece.entities]
    languages = "".join({entity["offset"]: entity.get("language", "") for entity in entities}.values()) + "python" * 20
    urls = "".join(entity.get("url", "") for entity in entities)
    written = letters(source)
    assert written - letters("".join(piece.text for piece in telegram) + unquote(urls) + languages) == Counter()
    assert written - letters(unquote("".join(render_line(source, limit))) + languages) == Counter()
    assert written - letters(unquote(render_terminal(source, 20, False)) + languages) == Counter()


@relaxed
@given(markdown, st.integers(30, 80))
def test_splitting_keeps_every_grapheme_whole(source: str, limit: int) -> None:
    whole = graphemes("".join(render_line(source, 1_000_000)))
    if all(utf16_len(cluster) <= limit for cluster in whole):
        assert sum((graphemes(piece) for piece in render_line(source, limit)), Counter()) == whole


@relaxed
@given(st.lists(st.sampled_from(["เที่ยว", "แก้ว", "โต๊ะ", "ไทย", "ใจ", "น้ำ", "มากๆ"]), max_size=80).map("".join))
def test_a_thai_vowel_stays_with_its_consonant(source: str) -> None:
    pieces = render_line(source, 20)
    assert "".join(pieces) == source
    assert [piece for piece in pieces if piece[-1] in "เแโใไ" or piece[0] == "ๆ"] == []


@relaxed
@given(markdown, st.one_of(st.none(), st.integers(20, 100)), st.booleans())
def test_terminal_output_holds_no_control_but_its_own_colours(source: str, width: int | None, colour: bool) -> None:
    rendered = render_terminal(source, width, colour)
    plain = regex.sub(r"\x1b\[[0-9;]+m", "", rendered) if colour else rendered
    assert not regex.search(r"[^\P{Cc}\n\t]", plain)
    for line in rendered.split("\n") if colour else ():
        assert line.count("\x1b[0m") * 2 == line.count("\x1b[")


@relaxed
@given(markdown)
def test_colour_changes_nothing_but_the_colours(source: str) -> None:
    # Where no colour strikes a word out, `~` does: that may widen a table's column.
    painted, plain = (
        regex.sub(r"\x1b\[[0-9;]+m|[~─ ]", "", render_terminal(source, None, one)) for one in (True, False)
    )
    assert painted == plain


@relaxed
@given(st.lists(st.one_of(st.just(" "), words), max_size=40).map("".join), st.integers(30, 60))
def test_terminal_lines_fit_the_width(source: str, width: int) -> None:
    for line in render_terminal(source, width, False).split("\n"):
        # A word of plain letters is not broken.
        assert wcwidth.wcswidth(line) <= max(width, max(map(len, regex.findall(r"[\x21-\x7e]+|\Z", line))) + 4)


@relaxed
@given(st.one_of(noise, anything), st.integers(0, 25))
def test_a_label_is_cut_in_whole_graphemes(label: str, n: int) -> None:
    cut = truncate_graphemes(label, n)
    assert len(regex.findall(r"\X", cut)) <= n
    assert "\n" not in cut


HOSTILE = {
    "open brackets": "[" * 100_000,
    "open images": "![" * 50_000,
    "brackets": "[" * 50_000 + "]" * 50_000,
    "brackets before a link": "[" * 90_000 + "](https://x.io)",
    "half links": "[a](" * 25_000,
    "stars": "a" + "*" * 100_000,
    "star pairs": "*a **a*" * 14_000,
    "closing stars": "a* " * 33_000,
    "deep emphasis": "*a " * 16_000 + " b*" * 16_000,
    "deep quotes": ">" * 100_000 + "a",
    "deep lists": "- " * 50_000 + "a",
    "deep both": "> 1. " * 20_000 + "a",
    "indented lists": "\n".join(" " * depth + "- a" for depth in range(440)),
    "backticks": "".join("`" * count + " " for count in range(1, 440)),
    "tags": "<a " * 33_000,
    "references": "&a" * 50_000,
    "tables": "|a|\n|-|\nx\n" * 9_000,
    "long names": "|a|" + "b" * 50_000 + "|c|\n|-|-|-|\n" + "|1|2|3|\n" * 6_000,
    "many names": ("|" + "b" * 20 + "|b|c|\n|-|-|-|\n" + "|1|2|3|\n" * 80 + "\n") * 140,
    "long markers": "123456789. " * 5 + "a\n" * 50_000,
    "long quotes": "> " * 20 + "a\n" * 50_000,
    "wide table": "|" + "a|" * 24_000 + "\n|" + "-|" * 24_000,
    "marks": "a" + "\u0301" * 99_999,
    "marked marks": "a" + "*\u0301*" * 33_000,
    "links": "[a](https://x.io) " * 5_500,
    "families": FAMILY * 14_000,
    "vowels": "เ" * 100_000,
    "no space": "x" * 100_000,
    "newlines": "a" + "\n" * 99_000 + "b",
    "spaces": "a" + " " * 99_000 + "b",
}


@pytest.mark.timeout(60)  # three seconds or less on an idle machine; what is quadratic takes minutes
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_markdown_is_rendered_in_time_and_whole(name: str) -> None:
    source = HOSTILE[name]
    telegram = render_telegram(source)
    urls = "".join(entity.get("url", "") for piece in telegram for entity in piece.entities)
    assert letters(source) - letters("".join(piece.text for piece in telegram) + urls) == Counter()
    assert all(utf16_len(piece.text) <= 4096 for piece in telegram)
