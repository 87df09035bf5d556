"""Text and marks -> parts that fit a platform's limits, cut where a reader would pause.

Best between paragraphs, then lines, sentences, spaces, after a Thai particle, and only then within a run of letters.
Never within a cluster, a link or an address that would itself fit; a cluster larger than the limit is cut all the same.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from functools import cached_property
from itertools import accumulate

import regex

from gateway.rendering.rich import Rich, Span
from gateway.rendering.text import cluster_ends, utf16_len, visible

_ADDRESS = regex.compile(r"https?://[^\s\p{Thai}<>\"]+")
# คะ alone also begins words (คะน้า, คะแนน).
_PARTICLE = regex.compile(r"(?:ค่ะ|ครับ|นะคะ|ครับผม|จ้ะ)\Z")
_OPENERS, _CLOSERS = "([{“‘«<", ")]}”’»>,.;:!?…%"


class _Pause(IntEnum):
    """How good a place to cut is."""

    WORD = 0
    CLUSTER = 1
    PARTICLE = 2
    SPACE = 3
    CODE_LINE = 4
    SENTENCE = 5
    LINE = 6
    PARAGRAPH = 7


def split(
    rich: Rich,
    limit: int,
    *,
    max_spans: int = 1_000_000,
    max_cost: int = 1_000_000_000,
    cost: Callable[[Span], int] = lambda span: 0,
) -> list[Rich]:
    """Parts of at most `limit` UTF-16 code units (2 or more), none blank, in order; a span that is cut goes on.

    A part is also ended before its spans exceed `max_spans` or their `cost` `max_cost`, unless they all begin where
    the part does. Space around the cuts is dropped, nothing else.
    """
    text = rich.text
    if not rich.spans and not rich.pictures and text == text.strip() and utf16_len(text) <= limit:  # as nearly always
        return [rich] if visible(text) else []
    return _Splitter(rich, limit, max_spans, max_cost, cost).parts()


class _Splitter:
    def __init__(self, rich: Rich, limit: int, max_spans: int, max_cost: int, cost: Callable[[Span], int]) -> None:
        self.text, self.spans = rich.text, rich.spans
        self.limit, self.max_spans, self.max_cost, self.cost = limit, max_spans, max_cost, cost

    @cached_property
    def ends(self) -> list[int]:
        return cluster_ends(self.text)

    @cached_property
    def whole(self) -> list[tuple[int, int]]:
        """What is not cut: links and addresses that would fit."""
        links = [(span.start, span.end) for span in self.spans if span.mark.kind == "text_link"]
        addresses = [match.span() for match in _ADDRESS.finditer(self.text)]
        return _merged(one for one in links + addresses if utf16_len(self.text[slice(*one)]) <= self.limit)

    @cached_property
    def code(self) -> list[tuple[int, int]]:
        return _merged((span.start, span.end) for span in self.spans if span.mark.kind == "pre")

    @cached_property
    def units(self) -> list[int]:
        """UTF-16 units up to each cluster's end."""
        starts = [0, *self.ends][: len(self.ends)]
        return list(accumulate(utf16_len(self.text[start:end]) for start, end in zip(starts, self.ends, strict=True)))

    @property
    def _is_one(self) -> bool:
        """Nearly every answer fits as it is."""
        few = len(self.spans) <= self.max_spans and sum(map(self.cost, self.spans)) <= self.max_cost
        return few and utf16_len(self.text) <= self.limit

    def parts(self) -> list[Rich]:
        if self._is_one:
            part = self._part(0, len(self.text), [span for span in self.spans if span.start < len(self.text)])
            return [part] if part else []
        parts: list[Rich] = []
        start, used = 0, 0  # of the next part: its first character, the units before it
        carried: list[Span] = []
        following = 0
        while start < len(self.text):
            end, spans, following = self._end(start, used, carried, following)
            part = self._part(start, end, spans)
            if part:
                parts.append(part)
            carried = [span for span in spans if span.end > end]
            used += utf16_len(self.text[start:end])
            start = end
        return parts

    def _end(self, start: int, used: int, carried: list[Span], following: int) -> tuple[int, list[Span], int]:
        """Where the part that begins at `start` ends, the spans in it, and the first span after it."""
        first = bisect_right(self.ends, start)
        last = bisect_right(self.units, used + self.limit) - 1
        if last < first:
            end = self._hard_end(start)
        else:
            end = self.ends[last]
        spans = list(carried)
        spent = sum(map(self.cost, spans))
        at = following
        while at < len(self.spans) and self.spans[at].start < end:
            spent += self.cost(self.spans[at])
            if len(spans) >= self.max_spans or spent > self.max_cost:
                before = bisect_right(self.ends, self.spans[at].start) - 1
                if before >= first:
                    last, end = before, self.ends[before]
                    break
            spans.append(self.spans[at])
            at += 1
        if end < len(self.text) and last >= first:
            end = self._pause(first, last, used)
        spans = [span for span in spans if span.start < end]
        while at > following and self.spans[at - 1].start >= end:
            at -= 1
        return end, spans, at

    def _hard_end(self, start: int) -> int:
        room, end = self.limit, start
        while end < len(self.text) and room >= (size := utf16_len(self.text[end])):
            room -= size
            end += 1
        return max(end, start + 1)

    def _pause(self, first: int, last: int, used: int) -> int:
        """The best place to cut among the ends of the clusters `first`..`last`: the last of the best kind, but not so
        early that parts get small for it."""
        best, found = -1, self.ends[last]
        for index in range(last, first - 1, -1):
            filled = (self.units[index] - used) / self.limit
            if filled < 0.25 and best >= 0:
                break
            kind = self._kind(self.ends[index])
            if kind > best and (filled >= 0.5 or kind <= _Pause.SPACE):
                best, found = kind, self.ends[index]
                if kind == _Pause.PARAGRAPH:
                    break
        return found

    def _kind(self, at: int) -> int:
        """A `_Pause`, or -1 where no cut may be."""
        if _within(self.whole, at):
            return -1
        text = self.text
        before, after = text[at - 1], text[at]
        if after == "\n" or (after.isspace() and before.isspace() and before != "\n"):
            return -1  # the cut comes after all of the space
        if before == "\n":
            if _within(self.code, at):
                return _Pause.CODE_LINE
            return _Pause.PARAGRAPH if text[at - 2 : at - 1] == "\n" else _Pause.LINE
        if before.isspace():
            word_end = text[max(at - 6, 0) : at - 1]
            if word_end[-1:] in tuple("•◦▪>") or regex.search(r"\d[.)]\Z", word_end):
                return _Pause.WORD  # a list's marker stays with its item
            if word_end[-1:] in tuple(".!?…。！？") or _PARTICLE.search(word_end):
                return _Pause.SENTENCE
            return _Pause.SPACE
        if before in "。！？":
            return _Pause.SENTENCE
        if after in _CLOSERS or before in _OPENERS or (before.isascii() and after.isascii()):
            return _Pause.WORD
        if before in "ะบม" and _PARTICLE.search(text, max(at - 6, 0), at) and text[at : at + 2] != "ผม":
            return _Pause.PARTICLE
        return _Pause.CLUSTER

    def _part(self, start: int, end: int, spans: Sequence[Span]) -> Rich | None:
        start, end = self._trimmed(start, end)
        text = self.text[start:end]
        if not visible(text):
            return None
        # A span that held nothing but the space around a cut ends before the part begins.
        clipped = [
            _trimmed(Span(first, last, s.mark), text)
            for s in spans
            if (first := max(s.start, start) - start) < (last := min(s.end, end) - start)
        ]
        kept = sorted((span for span in clipped if span.start < span.end), key=lambda span: (span.start, -span.end))
        return Rich(text, tuple(kept))

    def _trimmed(self, start: int, end: int) -> tuple[int, int]:
        if start >= end or not (self.text[start].isspace() or self.text[end - 1].isspace()):
            return start, end
        ends = self.ends
        index = bisect_right(ends, start)
        while index < len(ends) and start < end and self.text[start : ends[index]].isspace():
            start = ends[index]
            index += 1
        index = bisect_left(ends, end)
        while end > start and self.text[(last := max(start, ends[index - 1] if index else 0)) : end].isspace():
            end = last
            index -= 1
        return start, end


def _trimmed(span: Span, text: str) -> Span:
    """A platform drops marks on space; code and quotes keep theirs, it is their form."""
    if span.mark.kind in ("pre", "blockquote"):
        return span
    marked = text[span.start : span.end]
    start = span.start + len(marked) - len(marked.lstrip())
    return Span(start, span.start + len(marked.rstrip()), span.mark)


def _merged(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _within(ranges: Sequence[tuple[int, int]], at: int) -> bool:
    index = bisect_left(ranges, (at, 0)) - 1
    return index >= 0 and ranges[index][0] < at < ranges[index][1]
