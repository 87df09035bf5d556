"""The search's quick ways find what the plain ones do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from memory.long_term import events, many
from memory.long_term.document import plain
from memory.long_term.event import Event
from memory.long_term.many import Many
from memory.models import LongTermMemory
from memory.recall import lexical
from memory.recall.entry import Entry, Hit
from memory.recall.lexical import TOPIC, Lexical, slips
from memory.recall.postings import Postings, Texts, key
from memory.recall.ranking import Ranking
from memory.recall.terms import Terms, asked, groups, terms
from memory.retention import Retention, keep
from processors.models import EventType, MemoryEvent

BEGIN = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
WORDS = (
    "latte", "lattes", "latt", "table", "tabel", "A12345", "A12346", "birthday", "the", "แพ้กุ้ง", "กาแฟ", "กาแฟเย็น",
    "ขอบคุณ", "ขอบ", "ตึก", "ส่งของวันพุธ", "ชา", "allergic", "Tuesday", "2026", "นมโอ๊ต",
)  # fmt: skip
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)


def among(held: list[Terms], gone: set[int], question: Terms) -> dict[str, tuple[float, dict[int, int]]]:
    """By term of the question: its weight, and how often the texts have it."""
    left = [(number, one.all) for number, one in enumerate(held) if number not in gone]
    words = {word for _, said in left for word in said if "\u0e01" > word[0] != "#"}
    said = [*question.words, *(piece for run in question.runs if len(run) > 4 for piece in groups(run))]
    out: dict[str, tuple[float, dict[int, int]]] = {}
    for term in [*said, *(run for run in question.runs if len(run) <= 4)]:
        having = {number: one.count(term) for number, one in left if term in one}
        times = 1.0
        if term not in said:
            having = {number: 1 for number, _ in left if term in held[number].plain}
            times = max(1, len(term) - 2)
        elif not having and term[0] != "#":
            others = slips(term, [word for word in words if word[0] == term[0]])
            having = {number: 1 for number, one in left if set(others) & set(one)}
        rarity = math.log(1 + (len(left) - len(having) + 0.5) / (len(having) + 0.5))
        out[term] = times * rarity, having
    return out


def scored(held: list[Terms], gone: set[int], question: Terms) -> tuple[dict[int, float], dict[int, float], set[int]]:
    """BM25 and shares by their formulas, text by text."""
    told = among(held, gone, question)
    left = [number for number in range(len(held)) if number not in gone]
    average = sum(len(held[number].all) for number in left) / max(1, len(left)) or 1.0
    whole = sum(weight for weight, _ in told.values())
    spoken = sum(weight for term, (weight, _) in told.items() if term[0] == "#")
    scores, shares, worded = {}, {}, set()
    for number in left:
        rest = 0.9 * (0.6 + 0.4 * len(held[number].all) / average)
        mine = {term: (weight, having[number]) for term, (weight, having) in told.items() if number in having}
        if mine:
            scores[number] = sum(weight * 1.9 * count / (count + rest) for weight, count in mine.values())
            topics = sum(weight for term, (weight, _) in mine.items() if term[0] == "#")
            by_all = sum(weight for weight, _ in mine.values()) / whole
            shares[number] = max(by_all, TOPIC * topics / spoken) if topics else by_all
            if any(term[0] != "#" for term in mine):
                worded.add(number)
    return scores, shares, worded


@pytest.mark.parametrize(("vast", "from_so_many"), [(4000, 0), (4000, 3), (4000, 240), (1, 3), (1, 240)])
@settings(deadline=None)
@given(
    texts=st.lists(TEXTS, min_size=1, max_size=12),
    question=TEXTS | st.just("?!"),
    gone=st.sets(st.integers(0, 11)),
    packed=st.integers(0, 12),
    last=st.integers(1, 12),
)
def test_scores_are_those_of_the_formula(
    vast: int, from_so_many: int, texts: list[str], question: str, gone: set[int], packed: int, last: int
) -> None:
    held, index = [terms(one) for one in texts], Lexical()
    gone = {number for number in gone if number < len(held)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lexical, "_VAST", vast)
        patch.setattr(lexical, "_PACKED", from_so_many)
        patch.setattr(lexical, "_LAST", last)
        for one in held[:packed]:
            index.add(one)
        if packed:
            index = Lexical(index.packed(range(len(index))))
        for one in held[packed:]:
            index.add(one)
        for number in gone:
            index.remove(number, held[number])
        fit = index.scores(asked(question))
    scores, shares, worded = scored(held, gone, asked(question))
    assert fit.scores == pytest.approx(scores, rel=1e-5)
    assert {number: fit.share(number) for number in fit.scores} == pytest.approx(shares, rel=1e-5)
    assert fit.worded == worded


@pytest.mark.parametrize("from_so_many", [0, 3, 240])
@given(texts=st.lists(TEXTS, min_size=2, max_size=12), kept=st.sets(st.integers(0, 11), min_size=1), question=TEXTS)
@settings(deadline=None)
def test_what_is_kept_of_some_scores_like_those_alone(
    from_so_many: int, texts: list[str], kept: set[int], question: str
) -> None:
    left = sorted(number for number in kept if number < len(texts))
    assume(left)
    index, alone = Lexical(), Lexical()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lexical, "_PACKED", from_so_many)
        patch.setattr(lexical, "_LAST", 2)
        for one in texts:
            index.add(terms(one))
        packed = index.packed(left)
    for number in left:
        alone.add(terms(texts[number]))
    again, expected = Lexical(packed).scores(asked(question)), alone.scores(asked(question))
    assert again.scores == pytest.approx(expected.scores)
    assert list(map(again.share, again.scores)) == pytest.approx(list(map(expected.share, again.scores)))
    assert again.worded == expected.worded


@settings(deadline=None)
@given(texts=st.lists(TEXTS, min_size=22, max_size=40), gone=st.sets(st.integers(0, 11)), question=TEXTS)
def test_in_a_large_collection_a_common_word_tells_as_little_wherever_texts_are_kept(
    texts: list[str], gone: set[int], question: str
) -> None:
    fits = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lexical, "_LARGE", 5)
        patch.setattr(lexical, "_COMMON", 0.25)
        patch.setattr(lexical, "_LAST", 4)
        for from_so_many in (0, 9, 240):
            patch.setattr(lexical, "_PACKED", from_so_many)
            index = Lexical()
            for one in texts:
                index.add(terms(one))
            for number in gone:
                index.remove(number)
            fits.append(index.scores(asked(question)))
    for fit in fits[:2]:
        assert fit.scores == pytest.approx(fits[2].scores)
        shares = {number: fits[2].share(number) for number in fits[2].scores}
        assert {number: fit.share(number) for number in fit.scores} == pytest.approx(shares)
        assert fit.worded == fits[2].worded


@pytest.mark.parametrize("from_so_many", [0, 240])
def test_beside_a_rare_word_a_common_one_tells_nothing(from_so_many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexical, "_LARGE", 20)
    monkeypatch.setattr(lexical, "_PACKED", from_so_many)
    index = Lexical()
    for number in range(40):
        index.add(terms(f"latte {number + 1000}" if number else "latte zebra"))
    index.add(terms("zebra"))
    assert index.scores(asked("a latte for the zebra")).scores.keys() == {0, 40}
    assert len(index.scores(asked("a latte")).scores) == 40  # there is nothing else to go by


@given(st.text("abl123", min_size=1, max_size=8), st.lists(st.text("abl123", min_size=1, max_size=8), max_size=8))
def test_a_slip_is_half_of_the_letter_groups(word: str, others: list[str]) -> None:
    def pieces(one: str) -> set[str]:
        padded = f" {one} "
        return {padded[at : at + 3] for at in range(len(padded) - 2)}

    def like(other: str) -> bool:
        near = len(other) >= 4 and abs(len(other) - len(word)) <= 2
        mine, theirs = pieces(word), pieces(other)
        near &= word.isalpha() and other.isalpha()
        return other.startswith(word) or (near and len(mine & theirs) >= len(mine | theirs) / 2)

    expected = [one for one in others if like(one)] if len(word) >= 4 and not word.isdigit() else []
    assert slips(word, others) == expected


def event(number: int, said: str | None, minute: int) -> MemoryEvent:
    return MemoryEvent(
        event_type=EventType.REQUEST,
        payload={"original_message": said, "nothing": None, "deep": [{"a": 1.5}]},
        importance_score=number % 11 / 10,
        timestamp=BEGIN + timedelta(minutes=minute),
        event_id=f"e{number}",
    )


def unread(known: list[MemoryEvent]) -> list[Event]:
    found = events.read(orjson.dumps([plain(one) for one in known]))
    assert found is not None
    return found


STEPS = st.lists(
    st.fixed_dictionaries(
        {
            "come": st.lists(st.tuples(st.none() | TEXTS, st.sampled_from((0, 5, 50, 70))), max_size=4),
            "go": st.integers(0, 2),
            "cut": st.none() | st.integers(0, 5),  # at a place in the middle: somebody takes one back
            "late": st.booleans(),
            "read": st.booleans(),  # the file, anew
            "facts": st.lists(st.tuples(st.integers(0, 3), TEXTS, st.sampled_from((0, 50, 200))), max_size=3),
        }
    ),
    min_size=2,
    max_size=6,
)


@settings(deadline=None)
@given(steps=STEPS, question=TEXTS)
def test_what_comes_and_goes_is_found_as_if_all_was_looked_at(steps: list[dict[str, Any]], question: str) -> None:
    each = Ranking()
    known: list[Event] = []
    number = minute = 0
    for step in steps:
        known = known[step["go"] :]
        if step["cut"] is not None:
            known = known[: step["cut"]] + known[step["cut"] + 1 :]
        for said, gap in step["come"]:
            number, minute = number + 1, minute + gap
            known = [*known, *unread([event(number, said, minute - 100 * step["late"])])]
        facts = [
            Entry(f"f{at}", "fact", said, said, at=BEGIN + timedelta(minutes=gap)) for at, said, gap in step["facts"]
        ]
        each.update(facts, unread([one.whole() for one in known]) if step["read"] else known)
        anew = Ranking()
        anew.update(facts, known)
        assert neighbours(each) == neighbours(anew) == plainly(facts, known)
        for around in (True, False):
            hits, expected = (
                [told(hit) for hit in one.find(question, 30, around=around, now=BEGIN)] for one in (each, anew)
            )
            # Sums of the same numbers in another order may put what fits alike in another one.
            assert sorted(hit[:3] for hit in hits) == sorted(hit[:3] for hit in expected)
            assert [hit[3] for hit in hits] == pytest.approx([hit[3] for hit in expected], abs=0.002)


@settings(deadline=None)
@given(said=st.lists(TEXTS, min_size=1, max_size=6), other=st.integers(0, 5), question=TEXTS)
def test_what_a_fold_only_spaces_anew_is_not_taken_in_again(said: list[str], other: int, question: str) -> None:
    known = [event(number, one, number) for number, one in enumerate(said)]
    each = Ranking()
    each.update([], unread(known))
    each.added = 0
    spaced = events.read(orjson.dumps([plain(one) for one in known], option=orjson.OPT_INDENT_2))
    assert spaced is not None
    each.update([], spaced)
    assert each.added == 0
    other %= len(known)
    known[other] = event(other, "a zebra", other)
    each.update([], unread(known))
    assert each.added == 1
    anew = Ranking()
    anew.update([], unread(known))
    for asked_for in (question, "zebra"):
        hits, expected = (sorted(told(hit)[:3] for hit in one.find(asked_for, 9)) for one in (each, anew))
        assert hits == expected


COMING = st.lists(
    st.fixed_dictionaries(
        {
            "come": st.lists(st.tuples(TEXTS, st.sampled_from((0, 5, 50, 600))), max_size=5),
            "again": st.integers(0, 20),  # one that is known already, maybe
            "late": st.booleans(),
            "fork": st.booleans(),  # another one grows from here first
        }
    ),
    min_size=1,
    max_size=8,
)


@settings(deadline=None)
@given(steps=COMING, most=st.sampled_from((0, 5, 12)), days=st.sampled_from((0, 1)), question=TEXTS)
def test_many_packed_are_what_a_list_of_them_is(
    steps: list[dict[str, Any]], most: int, days: int, question: str
) -> None:
    rules, number, minute = Retention(most, days), 3, 0
    plainly = unread([event(one, "latte", 0) for one in range(3)])
    each = Ranking()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"AS_THEY_ARE": 2, "_BLOCK": 2, "_MORE": 2}.items():
            patch.setattr(many, name, value)
        patch.setattr(events, "MANY", 1)
        patch.setattr(events, "_FIRST", 1)
        packed: Sequence[Event] = Many(plainly)
        for step in steps:
            new = [event(step["again"], "was there", minute)] if step["again"] < number else []
            for said, gap in step["come"]:
                minute += gap
                new.append(event(number, said, minute - 100 * step["late"]))
                number += 1
            now = BEGIN + timedelta(minutes=minute)
            if step["fork"]:
                lost = unread([event(900 + number, "nobody kept it", minute)])
                each.update([], events.longer(packed, lost, now, rules))
            known = {one.event_id for one in plainly}
            plainly = [*plainly, *(one for one in unread(new) if one.event_id not in known)]
            plainly = keep(plainly, lambda one: one.timestamp, now, rules)
            packed = events.longer(packed, unread(new), now, rules)
            assert list(packed) == plainly
            assert [packed[at] for at in range(-len(packed), len(packed))] == plainly * 2
            mine, theirs = (
                events.with_events(LongTermMemory(tenant_id="t", user_id="u"), one) for one in (packed, plainly)
            )
            for count in range(5):
                assert list(events.newest(mine, count)) == list(events.newest(theirs, count))
                assert events.important(mine, 0.3, count + 1) == events.important(theirs, 0.3, count + 1)
            ids = [f"e{one}" for one in range(number + 1)]
            assert list(map(events.knows(mine), ids)) == list(map(events.knows(theirs), ids))
            each.update([], packed)
            anew = Ranking()
            anew.update([], plainly)
            assert neighbours(each) == neighbours(anew)
            hits, expected = (
                [told(hit) for hit in one.find(question, 9, around=True, now=now)] for one in (each, anew)
            )
            assert sorted(hit[:3] for hit in hits) == sorted(hit[:3] for hit in expected)
            assert [hit[3] for hit in hits] == pytest.approx([hit[3] for hit in expected], abs=0.002)


@settings(deadline=None)
@given(
    texts=st.lists(TEXTS, max_size=12), packed=st.integers(0, 12), letters=st.sampled_from(("ชา", "ขอบ", "a", "tab"))
)
def test_the_texts_with_some_letters_are_found_in_one_string(texts: list[str], packed: int, letters: str) -> None:
    each = Texts.read(*Texts(texts[:packed]).kept(range(len(texts[:packed]))))
    for one in texts[packed:]:
        each.add(one)
    for _ in range(2):
        assert [each[number] for number in range(len(each))] == texts
        assert each.having(letters) == [number for number, one in enumerate(texts) if letters in one]
        each.pack()


@settings(deadline=None)
@given(
    has=st.dictionaries(st.sampled_from(WORDS), st.sets(st.integers(0, 70_000), min_size=1), min_size=1),
    middle=st.integers(0, 70_000),
    kept=st.sets(st.integers(0, 70_000)),
)
def test_packed_postings_are_the_numbers_of_each_term(has: dict[str, set[int]], middle: int, kept: set[int]) -> None:
    kept |= next(iter(has.values()))
    each = Postings()
    for some in ([0, middle], [middle, 70_001]):
        part = {term: sorted(one for one in numbers if some[0] <= one < some[1]) for term, numbers in has.items()}
        each = each.with_more({key(term): one for term, one in part.items() if one}, some[1])
    each = Postings(each.stored)
    assert {term: each.having(at).tolist() for term, at in each.places(WORDS).items()} == {
        term: sorted(numbers) for term, numbers in has.items()
    }
    assert all(each.has(term, number) == (number in has.get(term, ())) for term in WORDS for number in (0, middle))
    new = {number: at for at, number in enumerate(sorted(kept))}
    few = each.of(sorted(kept), 70_001)
    assert {term: few.having(at).tolist() for term, at in few.places(WORDS).items()} == {
        term: left for term, numbers in has.items() if (left := [new[one] for one in sorted(numbers) if one in new])
    }


def told(hit: Hit) -> tuple[str, str, str, float]:
    return hit.id, hit.kind, hit.text, hit.score


def neighbours(of: Ranking) -> dict[str, str]:
    ids, beside = of._ids, of._beside
    after, before, talk = (
        {number: other for number, other in enumerate(one) if other >= 0}
        for one in (beside.after, beside.before, beside.talk)
    )
    assert before == {other: number for number, other in after.items()}
    assert talk.keys() == after.keys() | before.keys()
    assert all(talk[one] == talk[other] for one, other in after.items())
    return {ids[one]: ids[other] for one, other in after.items()}


def plainly(facts: list[Entry], known: list[Event]) -> dict[str, str]:
    out = {}
    lasting = {one.id: one for one in facts}
    for some in (lasting.values(), [one for one in known if one.found_by]):
        line = sorted((one.at, one.id) for one in some if one.at is not None)
        for (at, one), (then, other) in pairwise(line):
            if then - at <= timedelta(hours=1):
                out[one] = other
    return out


@given(st.integers(0, 10), st.none() | TEXTS | st.integers(0, 9), st.integers(0, 10_000))
def test_an_unread_event_is_told_as_a_read_one(number: int, said: Any, minute: int) -> None:
    one = event(number, said, minute)
    (found,) = unread([one])
    assert found.plain() == plain(one)
    assert found.whole() == one
