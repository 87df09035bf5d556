"""Pictures anywhere in whatever a model writes: each is shown once, and the text around it stays whole."""

from __future__ import annotations

from collections import Counter
from urllib.parse import unquote

import regex
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.messages import Image
from gateway.rendering import render_line_with_pictures, render_telegram_with_pictures, utf16_len
from tests.properties.test_rendering import documents, letters, noise, relaxed
from tests.standins.telegram_text import checked

HOST = "https://img.example.com/"
pictures = st.sampled_from([f"![น้ำ]({HOST}1.jpg)", f"\n\n![]({HOST}2.jpg)\n\n", f'![a **b**]({HOST}3.jpg "Z") '])
documents_with_pictures = st.lists(st.one_of(documents(), noise, pictures, pictures), max_size=6).map("".join)


def shows(url: str) -> bool:
    return url.startswith(HOST)


@relaxed
@given(documents_with_pictures, st.one_of(st.integers(2, 40), st.just(4096)))
@example(f"- ![a]({HOST}1.jpg)\n- ![b]({HOST}1.jpg)\n\n1.", 40)
@example(f"**x ![a]({HOST}1.jpg)\ny**", 40)
@example(f"![a]({HOST}1.jpg)![b]({HOST}2.jpg)\n\n> q ![c]({HOST}3.jpg) d", 40)
def test_no_letter_is_lost_and_every_piece_is_sound(source: str, limit: int) -> None:
    line = render_line_with_pictures(source, shows, limit)
    told = "".join(piece.alt + piece.url if isinstance(piece, Image) else piece for piece in line)
    # A picture in the midst of a line is named both there and on the picture.
    assert letters(source) - letters(unquote(told) + "python" * 20) == Counter()
    for piece in line:
        assert isinstance(piece, Image) or 0 < utf16_len(piece) <= limit
        assert isinstance(piece, Image) or regex.search(r"[^\s\u200b\u200d\ufeff]", piece)
    telegram = render_telegram_with_pictures(source, shows, limit)
    for part in telegram:
        if not isinstance(part, Image):
            assert 0 < utf16_len(part.text) <= limit
            checked(part.text, part.entities)
    assert [part for part in telegram if isinstance(part, Image)] == [part for part in line if isinstance(part, Image)]
