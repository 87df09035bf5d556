"""A text as terms that can be looked for: pure.

Latin words by their stems; Thai, which has no spaces, by its three-letter groups; and what both languages have words
for ("#allergy") by `topics.yaml`. Case, width, digits, zero-width characters and doubled vowels do not matter; space,
`_` and `-` are alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from operator import itemgetter
from pathlib import Path
from zlib import crc32

import msgspec
import yaml
from ahocorasick_rs import AhoCorasick, MatchKind

from processors.normalise import PARTICLES, SCANNED, normalise, words_apart

LONGEST = 4000  # characters of a text that are looked at
SHORT = 4  # letters: a Thai word this short is found whole or not at all

_LISTED = Path(__file__).parent / "topics.yaml"
_CUT = 200  # letters of a run that is cut in one call
_RUNS = re.compile(r"[ก-๎]+|[^\W_ก-๎]+")
_THAI = re.compile("[ก-๎]+")
_IDLE = re.compile(
    r"(?:the|an?|of|to|is|my|me|do|you|what|for|and|in|at|did|does|was|were|are|be|been|i|its?|on|with|that|this|how|"
    r"when|where|which|who|why|has|have|had|they|their|his|her|he|she|so|as|by|from|or|about|would|could|can|will|not|"
    r"there|any|some|s|t|im|ive|your|we|our|us|if|then|than|too|also|just)\Z"
)
_ENDINGS = ("ingly", "edly", "ings", "ing", "ies", "ied", "ed", "es", "s", "ly", "ment", "ness")
_END = 300  # characters
_ASKED = re.compile(r"\?[^\w?]*(?:\([^()]*\)\W*)?\Z")  # a remark in brackets may stand behind it
# Each alternative begins with its letters: nothing is tried where none of them can begin.
_WHAT = "อะไร|ยังไง|เท่าไหร่|ที่ไหน|ตรงไหน|แบบไหน|วันไหน|อันไหน|ตัวไหน|สีไหน|ไซส์ไหน|รุ่นไหน|เมื่อไหร่|ใคร|ทำไม|"
_ASKED_IN_THAI = re.compile(rf"(?:ไหม|หรือยัง|เหรอ|หรอ|{_WHAT.replace('|', '(?:บ้าง|ดี)?|')}กี่[ก-๎]{{1,8}})\W*\Z")
# The same in Thai, of a question: whom it is about, and that something is asked.
_IDLE_IN_THAI = re.compile(
    "ลูกค้า|ไหม|หรือยัง|เหรอ|หรอ|เท่าไหร่|กี่|อะไร|ยังไง|ที่ไหน|ตรงไหน|แบบไหน|ช่วงไหน|แถวไหน|แค่ไหน|ไหน|เมื่อไหร่|ใคร|ทำไม|บ้าง"
)
_DOUBLED = re.compile(r"([b-df-hjkmnp-rtv-z])\1\Z")


class Terms(msgspec.Struct, frozen=True, gc=False):
    """`words` are stems and topics, with repetitions; `runs` the Thai runs; `plain` the text in one spelling."""

    words: tuple[str, ...]
    runs: tuple[str, ...]
    plain: str

    @property
    def all(self) -> list[str]:
        out = list(self.words)
        for run in self.runs:
            out += groups(run)
        return out


@lru_cache(maxsize=4096)  # an event's are asked for again when it leaves the history, ten to eighteen messages later
def terms(text: str) -> Terms:
    text = text.replace("_", " ").replace("-", " ")
    spelled = normalise(text) if len(text) < SCANNED / 2 else normalise(text, LONGEST)  # as others ask: it is kept
    plain = PARTICLES.sub(" ", spelled)
    words, runs, idle = [], [], []
    for found in _RUNS.findall(plain.replace("'", "")):
        if thai(found):
            runs.append(found)
        elif _IDLE.match(found):
            idle.append(found)
        else:
            words.append(stem(found))
    return Terms((*(words or (() if runs else idle)), *topics(spelled)), tuple(runs), plain)


@lru_cache(maxsize=128)
def asked(question: str) -> Terms:
    """A question's terms, without what any Thai question has: its groups of letters stand anywhere."""
    of = terms(question)
    runs = _THAI.findall(_IDLE_IN_THAI.sub(" ", of.plain))
    return Terms(of.words, tuple(runs), of.plain) if runs or of.words else of


def asks(text: str) -> bool:
    """Whether it ends in a question."""
    return bool(_ASKED.search(text[-_END:]) or _ASKED_IN_THAI.search(terms(text).plain))


def groups(run: str) -> Sequence[str]:
    """The three-letter groups of a Thai run; a shorter run is its own."""
    count = len(run) - 2
    if 1 < count < _CUT:
        return _cut(count)(run)
    return [run[at : at + 3] for at in range(count)] or [run]


_THREES = [slice(at, at + 3) for at in range(_CUT)]  # the same for all: there is less to be touched


@cache
def _cut(count: int) -> Callable[[str], tuple[str, ...]]:
    """In one call, which takes half of what a loop takes."""
    return itemgetter(*_THREES[:count])


def idle(word: str) -> bool:
    """Whether an English word says nothing of itself."""
    return bool(_IDLE.match(word))


def thai(word: str) -> bool:
    return "\u0e01" <= word[0] <= "\u0e4e"


@lru_cache(maxsize=4096)
def stem(word: str) -> str:
    """ "opens", "opening", "opened" are one word, so are "city" and "cities"."""
    if word[-1].isdigit():  # a code
        return word
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            word = f"{word}y" if ending in ("ies", "ied") else _DOUBLED.sub(r"\1", word) if len(word) > 3 else word
            break
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


def topics(normalised: str) -> list[str]:
    """What a text speaks of: "#allergy"."""
    names, automaton = _topics()
    found = automaton.find_matches_as_indexes(words_apart(normalised))
    return list(dict.fromkeys([name for index, _, _ in found for name in names[index]]))


def topic_words(topic: str) -> list[str]:
    """What has "#allergy" for a topic: "แพ้", "rash"; normalised."""
    data = yaml.safe_load(_LISTED.read_text(encoding="utf-8"))
    return list(filter(None, map(normalise, (data.get(topic[1:]) or "").split(";"))))


@cache
def edition() -> int:
    """Another one where there are other topics: what was made of texts with those before is made anew."""
    return crc32(_LISTED.read_bytes())


@cache
def _topics() -> tuple[list[tuple[str, ...]], AhoCorasick]:
    data = yaml.safe_load(_LISTED.read_text(encoding="utf-8"))
    names: dict[str, list[str]] = {}
    for name, listed in data.items():
        for word in filter(None, map(normalise, listed.split(";"))):
            names.setdefault(words_apart(word), []).extend([f"#{name}"] if name else [])
    words = sorted(names)
    return [tuple(names[word]) for word in words], AhoCorasick(words, matchkind=MatchKind.LeftmostLongest)
