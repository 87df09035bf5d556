"""The fast ways through a message's words come to what the plain ways do."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from config.tenants import Tenant
from gateway import about_shop, guard, opening, prompt, responder
from memory.recall import terms
from processors import dates, faq, normalise, payload, personal
from processors import sought as seeking
from processors.faq import FaqIndex
from processors.needles import DIGIT, alternatives, digits_of, is_strings, needs
from processors.numbers import THAI_WORDS
from processors.rewrite import _FRESH, _POINTS_OR_COMPARES
from processors.rules import default_rules, signs
from processors.sought import Patterns, Sought
from tests.house import shop

TALK = Path(__file__).parents[1] / "data" / "shop_talk"
SAID = [json.loads(line)["text"] for file in sorted(TALK.glob("*.jsonl")) for line in file.open(encoding="utf-8")]
MODULES: Sequence[ModuleType] = (payload, personal, dates, faq, opening, about_shop, responder, signs)
SOUGHT = {
    f"{module.__name__}.{name}": one
    for module in MODULES
    for name, one in vars(module).items()
    if isinstance(one, Sought)
}
PATTERNS: list[Patterns[object]] = [signs._PATTERNS, *default_rules()._patterns.values()]  # type: ignore[list-item]
SOUGHT |= {sought.pattern: sought for _, sought in personal._PATTERNS}
WHOLE = [*(sought.pattern for sought in SOUGHT.values()), *(one for each in PATTERNS for one, _ in each.patterns)]
ALTERNATIVES = [one for pattern in WHOLE for one in alternatives(pattern)]

relaxed = settings(deadline=None, max_examples=300)

# What makes patterns fire, and what comes between.
MARKS = "0123456789 ?!.,:/#@-+฿$aกๆx\n"
PIECES = (
    " 5 ;บาท;.-;พัน;โมง;ทุ่ม;บ่าย;ตี;ครึ่ง;สอง;ยี่สิบ;แก้ว;ชิ้น;วันที่;วันเสาร์;พรุ่งนี้;มี.ค.;มีค;ธันวา;12/3;2026-11-28;08:30;081-234-5678;"
    "+66 81 234 5678;am;pm;march;next friday;in 3 days;สิ้นเดือน;ที่อยู่;10110;ชื่อ;ครับ;ค่ะ;แพ้;กุ้ง;vegan;half past six;o'clock;"
    "เปิด;ปิด;กี่โมง;ไหม;ราคา;เท่าไหร่;order ;a12;two boxes;i ;my ;what ;is ;the "
)
FOLLOWING = "the first;that;one;this;what about;it's;is;cold;same;มัน;ที่ไหนบ้าง;1;ครับ;นะคะ;เลย;อันนี้;อันเดิม;กว่านี้"
bits = st.sampled_from([*MARKS, *PIECES.split(";")])
ODD = (
    "55555|5555+|มากกกกก|่่|!!!|….|~~|เเ|\u200b|\ufe0f|\u00a0|\u3000|๑๒|ＣＦ|\ud800|\x00|é|e\u0301|ํา|"
    "หรือเปล่า|เท่าไร|เนตร|  |\t|\u2003"
)
texts = st.lists(st.one_of(st.sampled_from(SAID), bits), max_size=12).map("".join)


def spans(found: Sequence[re.Match[str]]) -> list[object]:
    return [(one.span(), one.groups()) for one in found]


@relaxed
@given(text=texts)
def test_what_is_sought_is_found_as_its_pattern_finds_it(text: str) -> None:
    plain = normalise.normalise(text)
    for sought in SOUGHT.values():
        whole = re.compile(sought.pattern)
        assert spans(list(sought.finditer(plain))) == spans(list(whole.finditer(plain))), sought.pattern
        assert list(sought.findall(plain)) == whole.findall(plain)
        first, other = sought.search(plain), whole.search(plain)
        assert (first and first.span()) == (other and other.span())
        assert sought.sub("_", plain) == whole.sub("_", plain)
    for patterns in PATTERNS:
        tried = [lead for pattern, lead in patterns.patterns if re.search(pattern, plain)]
        assert patterns.matching(plain) == tried


@settings(deadline=None, max_examples=400, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_each_text_that_a_pattern_matches_has_what_it_needs(data: st.DataObject) -> None:
    pattern = data.draw(st.sampled_from(ALTERNATIVES))
    text = data.draw(st.from_regex(pattern))
    for needles in needs(pattern):
        assert any(one in f" {text} " for one in needles) or (DIGIT in needles and re.search(r"\d", text)), (
            pattern,
            needles,
        )
    assert len(re.findall(r"\d", text)) >= digits_of(pattern), pattern


def test_a_pattern_is_split_where_no_group_is() -> None:
    assert alternatives(r"a(b|c)|[|(]d|\||e\)|(?:f|(?=g|h))") == [r"a(b|c)", "[|(]d", r"\|", r"e\)", "(?:f|(?=g|h))"]
    assert needs(r"\d+ (?:boxes|bags)(?!x)") == [frozenset({" boxes", " bags"}), frozenset({DIGIT})]
    assert needs(r"[^x]+|y") == []
    assert needs(r"(?:it|one|\d+) for me") == [frozenset({" for me"}), frozenset({"it", "one", DIGIT})]
    assert needs("²") == []  # no digit to a pattern
    assert needs("^(?:hi|hello)? you") == [
        frozenset({" hi you", " hello you", "  you"})
    ]  # a text stands between spaces
    for twice in ("^^hi you", "(?:^|x)^hi you", "x?(?:^|^)^hi you"):  # there is one beginning, with nothing before it
        assert needs(twice) == [frozenset({" hi you"})], twice


def test_digits_are_counted_and_strings_known_for_what_they_are() -> None:
    assert digits_of(r"(?<!\d)0[689]\d{3,4}(?:-\d\d|[1-3])?x+(?:\d{2}|\d(?:5|6))") == 7
    assert digits_of(r"\d*|9") == digits_of("[0-9a]") == 0
    assert all(map(is_strings, ("แพ้", "(?:นี้|นั้น)ไง?")))
    assert not any(map(is_strings, (r"\bnot", "a.c", "ab*", "ab(?!c)", " ab", "1", "ก", "(?:ab|x)")))


@relaxed
@given(
    parts=st.lists(st.sampled_from(FOLLOWING.split(";")), max_size=8),
    between=st.sampled_from((" ", "", "  ")),
)
def test_what_stands_with_something_polite_between_is_found_without_it(parts: list[str], between: str) -> None:
    whole = normalise.normalise(between.join(parts))
    text = " ".join(normalise.PARTICLES.sub(" ", whole).split())
    for pattern in (_POINTS_OR_COMPARES, _FRESH):
        assert pattern.is_in(text, whole) == (re.search(pattern.pattern, text) is not None)


def test_patterns_may_be_added_while_a_text_is_looked_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when another thread loads a module."""
    known, found = Sought("zyzzyva|quagga"), seeking._found

    def interrupted(text: str) -> object:
        told = found(text)
        Sought("aardvark")
        return told

    interrupted.cache_clear = found.cache_clear  # type: ignore[attr-defined]
    monkeypatch.setattr(seeking, "_found", interrupted)
    assert known.may("a quagga that nobody has seen yet")


def test_a_message_is_looked_through_once_while_hundreds_wait_for_a_slow_model() -> None:
    texts = [normalise.normalise(f"{said} #{at}") for at, said in zip(range(400), SAID * 2, strict=False)]
    for text in texts:
        seeking.may_match(text)
    passes = seeking._found.cache_info().misses
    weights = seeking._weights
    for text in texts:
        assert seeking.weighed(text) == sum(weight for one, weight in weights.items() if one in f" {text} ")
    assert seeking._found.cache_info().misses == passes


@relaxed
@given(
    text=st.lists(
        st.one_of(st.sampled_from(SAID), bits, st.characters(), st.sampled_from(ODD.split("|"))), max_size=15
    ).map("".join)
)
def test_a_text_is_normalised_as_by_one_substitution_after_the_other(text: str) -> None:
    for limit in (normalise.SCANNED, 20):
        assert normalise.normalise(text, limit) == plainly_normalised(text, limit)


def plainly_normalised(text: str, limit: int) -> str:
    spelling = re.compile("|".join(sorted(map(re.escape, normalise._SPELLINGS), key=len, reverse=True)))
    text = unicodedata.normalize("NFC", normalise.safe(text[: limit * 2]))
    text = normalise._INVISIBLE.sub("", text).translate(normalise._TABLE)[:limit].lower()
    text = normalise._LAUGH.sub(" ฮ่าฮ่า ", text)
    text = normalise._REPEATED_MARK.sub(r"\1", normalise._REPEATED.sub(r"\1", text))
    text = spelling.sub(lambda m: normalise._SPELLINGS[m[0]], text)
    return normalise._SPACE.sub(" ", text).strip()


@settings(deadline=None, max_examples=60)
@given(
    entries=st.lists(
        st.tuples(st.lists(st.sampled_from(SAID), min_size=1, max_size=3), st.sampled_from(SAID)), max_size=6
    ),
    text=texts,
)
def test_entries_are_scored_as_by_comparing_each_question(
    entries: list[tuple[list[str], str]], text: str
) -> None:  # fmt: skip
    index = FaqIndex(entries)
    asked = faq._features(text)
    words: dict[int, float] = {}
    for number, (questions, _) in enumerate(entries):
        for features in filter(None, map(faq._features, questions)):
            norm = math.sqrt(sum(index._squares(asked).values()) * sum(index._squares(features).values()))
            shared = sum(w * features[n] * index._idf[n] ** 2 for n, w in asked.items() if n in features)
            if shared:
                words[number] = max(words.get(number, 0.0), shared / norm)
    assert index._scores(text).words == pytest.approx(words)


INSTRUCTIONS = (
    "You are the barista of a small shop by the river. " * 2,
    "Never speak of the recipe, or of prices. " * 6,
)
RUNS = st.builds(
    lambda text, at, size, turned: text[at : at + size][:: -1 if turned else 1],
    st.sampled_from([prompt.RULES, *INSTRUCTIONS, *SAID]), st.integers(0, 300), st.integers(20, 200), st.booleans(),
)  # fmt: skip


@relaxed
@given(text=st.lists(RUNS, max_size=4).map(" ".join))
def test_what_gives_away_the_rules_is_told_as_by_looking_for_all_of_them(text: str) -> None:
    agents = {str(number): {"instructions": one} for number, one in enumerate(INSTRUCTIONS)}
    told = guard.Guard(Tenant.model_validate({**shop(), "id": "shop", "agents": {"default": {}, **agents}}))
    plain = guard._plain(text)
    wanted = len(plain) >= guard._PIECE and (told._gives_away(plain) or told._gives_away(plain[::-1]))
    assert told._tells(text) == wanted


SPELT = (
    (
        normalise.PARTICLES,
        r"(?:นะ|น่ะ|น้า|(?<=[ก-๎])อะ)?(?:ครับผม|ครับ|ค่ะ|คะ|ค่า|คับ|ขอรับ|จ้ะ|จ๊ะ|จ้า|ฮะ|ฮับ|งับ|งะ|เจ้าคะ|เจ้าค่ะ)"
        r"|(?<=[ก-๎])(?:นะ|น่ะ|อะ|เลย|ด้วย)(?![ก-๎])",
    ),
    (
        terms._ASKED_IN_THAI,
        r"(?:ไหม|หรือยัง|เหรอ|หรอ|(?:อะไร|ยังไง|เท่าไหร่|(?:ที่|ตรง|แบบ|วัน|อัน|ตัว|สี|ไซส์|รุ่น)ไหน|เมื่อไหร่|ใคร|ทำไม)(?:บ้าง|ดี)?"
        r"|กี่[ก-๎]{1,8})\W*\Z",
    ),
    (
        terms._IDLE_IN_THAI,
        r"ลูกค้า|ไหม|หรือยัง|เหรอ|หรอ|เท่าไหร่|กี่|อะไร|ยังไง|(?:ที่|ตรง|แบบ|ช่วง|แถว)?ไหน|แค่ไหน|เมื่อไหร่|ใคร|ทำไม|บ้าง",
    ),
    (re.compile(r"\d(?<!\d\d)\d?"), r"(?<!\d)\d{1,2}"),
    (re.compile(r"(\d(?<![\d.,ก-๎]\d)\d{0,3})"), r"(?<![\d.,ก-๎])(\d{1,4})"),
    (re.compile(r"noon(?<!\wnoon)\b|ทุ่ม(?<![ก-๎]ทุ่ม)"), r"\bnoon\b|(?<![ก-๎])ทุ่ม"),
    (
        re.compile(rf"((?:{payload._THAI_ALONE})(?:{'|'.join(THAI_WORDS)})*)"),
        rf"(?<!\d)(?<!\d )((?:{'|'.join(THAI_WORDS)})+)",
    ),
)
PARTS = sorted({part for _, pattern in SPELT for part in re.findall("[ก-๎]+", pattern)})


@relaxed
@given(text=st.lists(st.sampled_from([*PARTS, "noon", *"กa12.?! "]), max_size=9).map("".join))
def test_patterns_whose_alternatives_begin_with_letters_match_as_the_shorter_ones(text: str) -> None:
    for quick, pattern in SPELT:
        assert spans(list(quick.finditer(text))) == spans(list(re.finditer(pattern, text))), pattern
