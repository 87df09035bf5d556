from __future__ import annotations

from gateway.texts import AGAIN, TEXTS, fresh, wordings


def test_every_text_is_there_in_both_languages_and_no_wording_twice() -> None:
    assert {name for name, texts in TEXTS.items() if set(texts) != {"th", "en"}} == set()
    assert set(AGAIN) <= set(TEXTS)
    for name in AGAIN:
        for language in ("th", "en"):
            assert len(set(wordings(name, language))) == len(wordings(name, language)) > 1


def test_what_was_said_lately_is_said_in_other_words() -> None:
    first, second, third = wordings("complaint", "en")
    assert fresh("complaint", "en", []) == first
    assert fresh("complaint", "en", [first, "something else"]) == second
    assert fresh("complaint", "en", [first, second]) == third
    assert fresh("complaint", "en", [first, second, third]) == second  # the first asks for details: not again
    assert fresh("complaint", "en", [first, third, second]) == third
    assert fresh("feedback", "en", wordings("feedback", "en")) == wordings("feedback", "en")[0]
