"""Which language a message is in, by script and a few words. No model: scripts decide as well as one."""

from __future__ import annotations

import re

from processors.models import Language
from processors.normalise import normalise

_IDS = re.compile(r"https?://\S+|[^\s@]{1,64}@[^\s@]{1,100}|#\S+")
_THAI = re.compile(r"[ก-ฺเ-๎]+")
_LATIN = re.compile(r"[a-zà-ɏ]+")
# Thai written in Latin letters. Words that are English words too (me, ma, gin) are left out.
_ROMANISED = frozenset({
    "arai", "aroi", "arroi", "baht", "chai", "chan", "dai", "dee", "duay", "gin", "jai", "kao", "kapkhun", "kapkun",
    "kha", "khao", "khob", "khobkhun", "khop", "khopkhun", "khrap", "khrub", "khun", "kin", "kob", "kobkun", "kop",
    "krab", "krap", "krub", "krup", "kub", "laeo", "laew", "leaw", "maak", "maakk", "mai", "mak", "meua", "nai",
    "narak", "ngai", "noi", "nong", "nueng", "pai", "pee", "phi", "phom", "pom", "rai", "rao", "sabai", "sam",
    "sawaddee", "sawasdee", "sawasdeeka", "sawasdeekrub", "sawatdee", "sawatdeekrap", "song", "suay", "tamngai",
    "tao", "ka",
    "taorai", "tee", "tham", "thao", "thaorai", "wasdee", "yangngai", "yung"
})  # fmt: skip
_CODES = re.compile(r"(?:^|\s)(?:cf|f)\s*\d", re.IGNORECASE)
_ROMANISED_MOSTLY = 0.6  # of the words; "mai" and "kin" alone turn up in names


def detect(text: str, previous: Language | None = None) -> Language | None:
    """`th`, `en` or `mixed` (both scripts, Thai in Latin letters, or an order code such as "CF 2");
    numbers, punctuation and emoji alone tell nothing: `previous`."""
    plain = _IDS.sub(" ", normalise(text))
    thai = bool(_THAI.search(plain.replace("ฮ่าฮ่า", "")))
    latin = [word for word in _LATIN.findall(plain) if len(word) > 1 or word in "ai"]
    if thai:
        return "mixed" if any(len(word) > 1 for word in latin) else "th"
    if not latin:
        return "th" if "ฮ่าฮ่า" in plain and previous is None else previous
    if _CODES.search(plain) or sum(word in _ROMANISED for word in latin) / len(latin) >= _ROMANISED_MOSTLY:
        return "mixed"
    return "en"


def answer_language(text: str, previous: Language | None = None) -> Language:
    """`th` or `en`: what the customer is answered in. In a mixed message the script with more words, a Thai word
    counted as four letters; romanised Thai and order codes are answered in Thai; nothing to go by: `previous`,
    else Thai."""
    language = detect(text, previous)
    if language is None:
        return "en" if previous == "en" else "th"
    if language != "mixed":
        return language
    plain = normalise(text)
    thai = sum(map(len, _THAI.findall(plain))) / 4
    if not thai:
        return "th"
    return "th" if thai >= len(_LATIN.findall(plain)) / 2 else "en"
