"""When two wordings say the same: pure. For Thai, which is written without spaces, and English."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache

from processors.normalise import PARTICLES, normalise

_SEPARATORS = re.compile(r"[\s_\-]+")
# Who speaks and how politely does not change what is said.
_FILLERS = re.compile(
    r"(?:the|an?|user|customer|that|is|are|am|be|i|my|me|they|their|has|have|please|so|very|really|just|to|of|do|does|did)\Z"
)
_THAI_FILLERS = re.compile(r"ลูกค้า|คุณลูกค้า|ผู้ใช้|ดิฉัน|(?<![ก-๎])(?:ผม|หนู|ฉัน|เรา)(?=[ก-๎ ])")
_NEGATIONS = re.compile(
    r"ไม่ได้|ไม่|มิได้|อย่า|ห้าม|เลิก|\b(?:not|never|no|without|cannot|cant|dont|doesnt|didnt|isnt|arent|wasnt|wont|"
    r"stopped|longer)\b|n't\b"
)
_WORDS = re.compile(r"[ก-๎]+|[^\W_ก-๎]+")
_LONGEST_KEY, _HEAD = 60, 48
_COMPARED = 1000  # characters: longer texts are alike if they are equal


@lru_cache(maxsize=1024)
def key_form(key: str) -> str:
    """Keys with the same form are the same key: case does not count; space, `_` and `-` are alike."""
    return _SEPARATORS.sub("_", key.strip().casefold()).strip("_")


@lru_cache(maxsize=4096)
def core(text: str, *, negations: bool = True) -> tuple[str, ...]:
    """What is said, without politeness and fillers. Everything that tells apart stays: numbers, names, negations (or
    not even those)."""
    if len(text) > _COMPARED:
        return (text,)
    plain = normalise(text).replace("n't", " not")
    plain = PARTICLES.sub(" ", _THAI_FILLERS.sub(" ", plain))
    if not negations:
        plain = _NEGATIONS.sub(" ", plain)
    words = [_singular(word) for word in _WORDS.findall(plain) if not _FILLERS.match(word)]
    # Spaces in Thai are a matter of taste.
    out: list[str] = []
    for word in words:
        if out and _thai(word) and _thai(out[-1]):
            out[-1] += word
        else:
            out.append(word)
    return tuple(out)


def negated(text: str) -> bool:
    return len(_NEGATIONS.findall(normalise(text).replace("n't", " not"))) % 2 == 1


def slug(text: str) -> str:
    """A key made of a statement: equal ones for equal statements alone."""
    key = "_".join(core(text))
    if len(key) <= _LONGEST_KEY:
        return key
    return f"{key[:_HEAD]}_{hashlib.sha256(key.encode()).hexdigest()[:8]}"


def _singular(word: str) -> str:
    """Verbs and nouns alike: `likes` and `like`, `sizes` and `size`."""
    plain = word.isascii() and word.isalpha() and len(word) > 3 and word.endswith("s") and not word.endswith("ss")
    return word[:-1] if plain else word


def _thai(word: str) -> bool:
    return "\u0e01" <= word[0] <= "\u0e4e"
