"""Numbers and addresses that name a person, found in a text: pure.

A Thai national id by its check digit, a payment card by Luhn's, a phone number by its form, a bank account by its form
or by the words beside it, an e-mail address.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

from stdnum import luhn
from stdnum.th import pin

Kind = Literal["thai_id", "card", "phone", "bank_account", "email"]
KINDS: tuple[Kind, ...] = get_args(Kind)

_MAIL = re.compile(
    r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9])"
)
_RUN = re.compile(r"(?<![A-Za-z0-9])\(?\+?\d(?:[ .()\-\u00a0\u2010-\u2015]{0,2}\d){8,18}(?![A-Za-z0-9])")
_PIECE = re.compile(r"[^ \u00a0]+")
_ACCOUNT = re.compile(r"\d{3}-\d-\d{5}-\d")
_BANK = re.compile(
    r"บัญชี|ธนาคาร|เลขที่บช|บช\.|พร้อมเพย์|กสิกร|ไทยพาณิชย์|กรุงไทย|กรุงเทพ|กรุงศรี|ออมสิน"
    r"|\b(?:bank|account|acct|a/c|promptpay|kbank|scb|ktb|bbl|ttb)\b",
    re.IGNORECASE,
)
_BY_PHONE = re.compile(r"พร้อมเพย์|โทร|เบอร์|\b(?:promptpay|phone|tel|call)\b", re.IGNORECASE)
_NEAR = 40  # characters before a number in which such a word speaks of it
_THAI_PHONE = re.compile(r"0[689]\d{8}|0[2-57]\d{7}|(?:\+66|66)(?:[689]\d{8}|[2-57]\d{7})")
_ABROAD = re.compile(r"\+[1-9]\d{7,14}")
_CARD = re.compile(r"[2-6]\d{12,18}")
_THAI, _WIDE = 0x0E50, 0xFF10  # zeros of other scripts
_DIGITS = {zero + value: str(value) for zero in (_THAI, _WIDE) for value in range(10)}
_GIVEN = re.compile(rf"\[({'|'.join(KINDS)})_(\d{{1,4}})\]")


@dataclass(frozen=True, slots=True)
class Found:
    start: int
    end: int
    kind: Kind


def found(text: str, kinds: Collection[Kind] = KINDS) -> list[Found]:
    """In the order of the text, none within another."""
    if not kinds or not ("@" in text or any(map(str.isdigit, text))):
        return []
    plain = text.translate(_DIGITS)  # as long as the text
    mails = [Found(*match.span(), "email") for match in _MAIL.finditer(plain)]
    taken = [(one.start, one.end) for one in mails]
    numbers = [one for one in _numbers(plain) if not any(start < one.end and one.start < end for start, end in taken)]
    return sorted((one for one in (*mails, *numbers) if one.kind in kinds), key=lambda one: one.start)


def masked(text: str, kinds: Collection[Kind] = KINDS) -> str:
    """With `[phone]` and the like in their places. The very same where there is none."""
    return _replaced(text, kinds, lambda one, _: f"[{one.kind}]")


def masked_within(value: Any, kinds: Collection[Kind] = KINDS) -> Any:
    """The same in every text of a JSON value; a number that is one becomes its mask."""
    if isinstance(value, str):
        return masked(value, kinds)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return text if (text := masked(str(value), kinds)) != str(value) else value
    if isinstance(value, dict):
        return {name: masked_within(one, kinds) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [masked_within(one, kinds) for one in value]
    return value


class Withheld:
    """What of one conversation is not told to somebody: `told` gives each number a name, the same one each time, and
    `whole` puts the numbers back."""

    def __init__(self, kinds: Collection[Kind]) -> None:
        self._kinds = kinds
        self._names: dict[str, str] = {}
        self._numbers: dict[str, str] = {}

    def told(self, text: str) -> str:
        return _replaced(text, self._kinds, self._name)

    def whole(self, text: str) -> str:
        return _GIVEN.sub(lambda match: self._numbers.get(match[0], match[0]), text) if self._numbers else text

    def _name(self, one: Found, number: str) -> str:
        if number not in self._names:
            count = 1 + sum(name.startswith(f"[{one.kind}_") for name in self._numbers)
            name = f"[{one.kind}_{count}]"
            self._names[number], self._numbers[name] = name, number
        return self._names[number]


def _replaced(text: str, kinds: Collection[Kind], name: Any) -> str:
    out: list[str] = []
    at = 0
    for one in found(text, kinds):
        out += [text[at : one.start], name(one, text[one.start : one.end])]
        at = one.end
    return "".join([*out, text[at:]]) if out else text


def _numbers(plain: str) -> Iterator[Found]:
    for run in _RUN.finditer(plain):
        if (kind := _kind(plain, run.start(), run.end())) is not None:
            yield Found(run.start(), run.end(), kind)
            continue
        for piece in _PIECE.finditer(plain, run.start(), run.end()):  # two numbers side by side
            if (kind := _kind(plain, piece.start(), piece.end())) is not None:
                yield Found(piece.start(), piece.end(), kind)


def _kind(plain: str, start: int, end: int) -> Kind | None:
    written = plain[start:end]
    digits = re.sub(r"\D", "", written)
    if len(digits) == 13 and pin.is_valid(digits):
        return "thai_id"
    if _CARD.fullmatch(digits) and luhn.is_valid(digits):
        return "card"
    if _ACCOUNT.fullmatch(written):
        return "bank_account"
    dialled = ("+" if "+" in written else "") + digits
    before = plain[max(0, start - _NEAR) : start]
    if _BANK.search(before) and 10 <= len(digits) <= 15 and not _BY_PHONE.search(before):
        return "bank_account"
    return "phone" if _THAI_PHONE.fullmatch(dialled) or _ABROAD.fullmatch(dialled) else None
