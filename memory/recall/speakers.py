"""Whom a question names of those who said something: pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from memory.recall.terms import Terms, terms

_GOES_ON = r"(?![ะ-ูๅ็-๎])"  # a letter with a vowel or a tone behind it belongs to the next word, or makes this one longer
# A Thai name stands at the beginning of a stretch, or behind what a name follows; elsewhere it is part of a word.
_BEFORE = r"(?:(?<![ก-๎])|(?<=คุณ)|(?<=พี่)|(?<=น้อง)|(?<=ของ)|(?<=ให้)|(?<=กับ)|(?<=ว่า)|(?<=ที่)|(?<=และ))"
_TITLES = re.compile(r"\A(?:คุณ|พี่|น้อง|นางสาว|นาง|นาย)(?=[ก-๎]{2})")


class Speakers:
    """By the words of their names; a word that two have names neither."""

    def __init__(self, names: Iterable[str]) -> None:
        self._words: dict[str, str] = {}
        self._thai: list[tuple[re.Pattern[str], str]] = []
        runs: dict[str, str] = {}
        for name in names:
            told = terms(name)
            for word in filter(lambda one: not one.startswith("#"), told.words):
                self._words[word] = name if self._words.get(word, name) == name else ""
            for run in told.runs:
                bare = _TITLES.sub("", run)
                runs[bare] = name if runs.get(bare, name) == name else ""
        self._thai = [(re.compile(f"{_BEFORE}{run}{_GOES_ON}"), name) for run, name in runs.items()]

    def named(self, question: Terms) -> str:
        """The one that is named; "" where it is none, or more than one."""
        if not (self._words or self._thai):
            return ""
        found = {self._words.get(word, "") for word in question.words}
        found |= {name for pattern, name in self._thai if pattern.search(question.plain)}
        found.discard("")
        return found.pop() if len(found) == 1 else ""
