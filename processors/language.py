"""Which language a message is in, by script and a few words. No model: scripts decide as well as one."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Literal

from processors.models import Language
from processors.normalise import normalise

_IDS = re.compile(r"https?://\S+|[^\s@]{1,64}@[^\s@]{1,100}|#\S+")
_BUT_MAIL = re.compile(r"https?://\S+|#\S+")
_THAI = re.compile(r"[ก-ฺเ-๎]+")
_LATIN = re.compile(r"[a-zà-ɏ]+")
# Thai written in Latin letters: words that hardly are English ones …
_ROMANISED = frozenset({
    "ahan", "aharn", "aow", "arai", "aroi", "arroi", "baht", "ber", "bur", "chai", "cheu", "chuai", "chuay", "chue",
    "daeng", "dai", "duay", "gab", "gap", "gee", "jai", "jang", "jong", "jung", "ka", "kaeo", "kaew", "kai", "kao",
    "kap", "kapkhun", "kapkun", "kha", "khaek", "khai", "khao", "khap", "kho", "khob", "khobkhun", "khon", "khong",
    "khop", "khopkhun", "khor", "khrai", "khrap", "khrub", "khun", "kiew", "klap", "klong", "krab", "krai", "krap",
    "krapow", "krub", "krup", "kub", "kung", "laeo", "laew", "leaw", "leoi", "leum", "loei", "loek", "loey", "luem",
    "maak", "maakk", "mai", "mak", "mee", "meua", "mong", "muea", "nai", "naka", "nakrap", "narak", "nee", "ngai",
    "ngern", "ngoen", "noi", "nong", "nueng", "nung", "oan", "paeng", "pai", "pee", "perd", "phae", "phaeng",
    "phang", "phi", "phid", "phom", "phoot", "phrung", "phrungni", "phuket", "pid", "plian", "poed", "raan", "rai",
    "rao", "rikan", "roop", "rub", "sabai", "sabaidee", "sang", "sanjai", "sawaddee", "sawasdee", "sawasdeeka",
    "sawasdeekrub", "sawatdee", "sawatdeeka", "sawatdeekrap", "sia", "sonjai", "suay", "tamngai", "tao", "taorai",
    "tarang", "tham", "thammai", "thao", "thaorai", "thi", "thong", "thua", "toh", "trong", "tua", "wasdee", "yangngai",
    "yoo", "yung"
})  # fmt: skip
# … and those that are, and only count beside one of the first.
_EITHER = frozenset({
    "a", "an", "ao", "at", "bang", "cha", "chan", "chong", "dam", "dao", "dee", "do", "don", "gin", "hai", "hi",
    "i", "in", "kan", "kin", "la", "look", "ma", "mi", "na", "no", "nom", "on", "own", "pad", "pen", "pla", "ran",
    "rap", "ror", "sam", "si", "so", "some", "song", "tam", "tang", "tee", "ten", "thai", "tho", "to", "tob", "toe",
    "u", "wai", "wan", "yang", "yen", "yu"
})  # fmt: skip
# What shows that an English speaker writes; other words, such as a brand, a size or "ok", are written by everybody.
_ENGLISH = frozenset({
    "a", "about", "add", "again", "all", "am", "an", "and", "any", "are", "at", "available", "bad", "bill", "bring",
    "broken", "buy", "bye", "call", "can", "cancel", "change", "check", "cheers", "close", "closed", "come", "cost",
    "could", "day", "days", "deliver", "delivery", "did", "do", "does", "done", "email", "fast", "fine", "for",
    "from", "get", "give", "good", "great", "have", "hello", "help", "hey", "hi", "how", "i", "in", "is", "it",
    "just", "know", "later", "like", "location", "long", "lost", "love", "may", "me", "menu", "money", "more",
    "morning", "much", "my", "need", "new", "nice", "night", "no", "not", "nothing", "now", "of", "on", "one",
    "open", "or", "order", "our", "out", "paid", "pay", "phone", "please", "price", "problem", "refund", "right",
    "room", "see", "send", "sent", "ship", "some", "soon", "sorry", "still", "stop", "sure", "table", "take",
    "thank", "thanks", "that", "the", "there", "they", "this", "time", "to", "today", "tomorrow", "tonight", "too",
    "two", "up", "us", "very", "wait", "want", "was", "we", "what", "when", "where", "which", "who", "why", "will",
    "with", "work", "wrong", "yeah", "yes", "yet", "you", "your"
})  # fmt: skip
_FEW = 3  # words
_LAUGHS: Final = "laughs"  # nothing but "555": Thai, where nothing is known of who writes
_CODES = re.compile(r"(?:^|\s)(?:cf|f)\s*\d|^cf\b", re.IGNORECASE)
_MOSTLY = 0.6  # of the words; "mai" and "kin" alone turn up in names


def detect(text: str, previous: Language | None = None) -> Language | None:
    """`th`, `en` or `mixed` (both scripts, Thai in Latin letters, or an order code such as "CF 2");
    numbers, punctuation and emoji alone tell nothing: `previous`."""
    found = _detect(normalise(text))
    if found == _LAUGHS:
        return previous or "th"
    return previous if found is None else found


@lru_cache(maxsize=256)
def _detect(plain: str) -> Language | Literal["laughs"] | None:
    if "@" in plain:
        plain = _IDS.sub(" ", plain)
    elif "#" in plain or "://" in plain:
        plain = _BUT_MAIL.sub(" ", plain)
    thai = bool(_THAI.search(plain.replace("ฮ่าฮ่า", "")))
    latin = [word for word in _LATIN.findall(plain) if len(word) > 1 or word in "ai"]
    code = "f" in plain and _CODES.search(plain)
    if thai:
        return "mixed" if code or any(len(word) > 1 for word in latin) else "th"
    if not latin:
        return _LAUGHS if "ฮ่าฮ่า" in plain else None
    return "mixed" if code or _romanised(latin) else "en"


def _anybodys(text: str) -> bool:
    words = _LATIN.findall(normalise(text))
    return len(words) <= _FEW and not any(word in _ENGLISH for word in words)


def _romanised(words: list[str]) -> bool:
    sure = sum(word in _ROMANISED for word in words)
    return sure > 0 and (sure + sum(word in _EITHER for word in words)) / len(words) >= _MOSTLY


def answer_language(text: str, previous: Language | None = None) -> Language:
    """`th` or `en`: what the customer is answered in. In a mixed message the script with more words, a Thai word
    counted as four letters; romanised Thai and order codes are answered in Thai; nothing to go by (a number, a brand, a
    size): `previous`, else Thai."""
    language = detect(text, previous)
    if language == "en" and previous in ("th", "mixed") and _anybodys(text):
        return "th"
    if language is None:
        return "en" if previous == "en" else "th"
    if language != "mixed":
        return language
    plain = normalise(text)
    thai = sum(map(len, _THAI.findall(plain))) / 4
    if not thai:
        return "th"
    return "th" if thai >= len(_LATIN.findall(plain)) / 2 else "en"
