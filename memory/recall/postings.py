"""Which texts have which term, and the texts themselves, packed: in a tenth of what dictionaries take, and read from a
file as it stands. What is packed is never changed in place."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import accumulate, compress, pairwise
from typing import NamedTuple

_EXACT = 6  # bytes of a term that is its own key: three letters, as most are
_LONGER = 1 << 63  # the mark of other keys: sums of so many bits that no two terms share one
_SMALL = 1 << 16
_APART = "\n"  # no letters that are looked for have it


class Stored(NamedTuple):
    """As plain values."""

    keys: bytes = b""
    begins: bytes = bytes(4)
    numbers: bytes = b""
    wide: bool = False  # numbers of four bytes, not two


@lru_cache(maxsize=8192)
def key(term: str) -> int:
    raw = term.encode("utf-16-le", "surrogatepass")
    if len(raw) <= _EXACT:
        return int.from_bytes(raw, "little")
    return int.from_bytes(blake2b(raw, digest_size=8).digest(), "little") | _LONGER


class Postings:
    """`keys` rise; the numbers of the one at a place are those between its begin and the next one's, rising too."""

    __slots__ = ("begins", "keys", "numbers")

    def __init__(self, stored: Stored = Stored()) -> None:
        self.keys = array("Q", stored.keys)
        self.begins = array("I", stored.begins)
        self.numbers = array("I" if stored.wide else "H", stored.numbers)

    @property
    def stored(self) -> Stored:
        wide = self.numbers.typecode == "I"
        return Stored(self.keys.tobytes(), self.begins.tobytes(), self.numbers.tobytes(), wide)

    @property
    def size(self) -> int:
        """Bytes, about."""
        return 12 * len(self.keys) + self.numbers.itemsize * len(self.numbers)

    def place(self, term: str) -> int:
        """-1: no text has it."""
        wanted, keys = key(term), self.keys
        at = bisect_left(keys, wanted)
        return at if at < len(keys) and keys[at] == wanted else -1

    def places(self, terms: Collection[str]) -> dict[str, int]:
        """Of those of them that a text has."""
        keys, end = self.keys, len(self.keys)
        out = {}
        for term, wanted in zip(terms, map(key, terms), strict=True):
            at = bisect_left(keys, wanted)
            if at < end and keys[at] == wanted:
                out[term] = at
        return out

    def count(self, place: int) -> int:
        return self.begins[place + 1] - self.begins[place]

    def having(self, place: int) -> array[int]:
        return self.numbers[self.begins[place] : self.begins[place + 1]]

    def has(self, term: str, number: int) -> bool:
        at = self.place(term)
        if at < 0:
            return False
        end = self.begins[at + 1]
        found = bisect_left(self.numbers, number, self.begins[at], end)
        return found < end and self.numbers[found] == number

    def with_more(self, more: Mapping[int, Sequence[int]], total: int) -> Postings:
        """With the later texts of these terms' keys, rising; `total`: what all numbers are below."""
        wide = "I" if total > _SMALL or self.numbers.typecode == "I" else "H"
        old = self.numbers if self.numbers.typecode == wide else array(wide, self.numbers)
        keys, begins = self.keys, self.begins
        names, numbers, counts = array("Q"), array(wide), array("I")
        sizes = array("I", map(int.__sub__, begins[1:], begins))
        at = 0
        for wanted, listed in sorted(more.items()):
            here = bisect_left(keys, wanted, at)
            known = here < len(keys) and keys[here] == wanted
            names += keys[at:here]
            names.append(wanted)
            counts += sizes[at:here]
            numbers += old[begins[at] : begins[here + known]]
            numbers.extend(listed)
            counts.append(len(listed) + (sizes[here] if known else 0))
            at = here + known
        names += keys[at:]
        counts += sizes[at:]
        numbers += old[begins[at] :]
        return _made(names, counts, numbers)

    def of(self, kept: Iterable[int], total: int) -> Postings:
        """Of these numbers alone, rising, and counted from 0 there; `total`: what all numbers are below."""
        new, left = array("I", bytes(4 * total)), bytearray(total)
        for at, number in enumerate(kept):
            new[number], left[number] = at, 1
        stay = bytes(map(left.__getitem__, self.numbers))
        numbers = array(self.numbers.typecode, map(new.__getitem__, compress(self.numbers, stay)))
        before = [0, *accumulate(stay)]
        counts = [before[end] - before[begin] for begin, end in pairwise(self.begins)]
        return _made(array("Q", compress(self.keys, counts)), array("I", filter(None, counts)), numbers)


class Bits:
    """Which of some texts have which term, as it lies in a file: of the few terms that are asked for the bits become
    numbers, as making them of all takes longer than the search. `keys` rise; each one's bits are as many bytes."""

    __slots__ = ("_bits", "_keys", "_size")

    def __init__(self, keys: bytes, bits: bytes) -> None:
        self._keys = array("Q", keys)
        self._bits = bits
        self._size = len(bits) // max(1, len(self._keys))

    @property
    def size(self) -> int:
        """Bytes."""
        return (8 + self._size) * len(self._keys)

    def having(self, terms: Iterable[str]) -> dict[str, int]:
        """Of each of them."""
        keys, bits, size, end = self._keys, self._bits, self._size, len(self._keys)
        out = dict.fromkeys(terms, 0)
        for term in out:
            at = bisect_left(keys, wanted := key(term))
            if at < end and keys[at] == wanted:
                out[term] = int.from_bytes(bits[at * size : at * size + size], "little")
        return out

    def all(self) -> dict[int, int]:
        """By key."""
        bits, size = self._bits, self._size
        found = [int.from_bytes(bits[at : at + size], "little") for at in range(0, len(bits), size or 1)]
        return dict(zip(self._keys, found, strict=True))


def as_bytes(bits: Mapping[int, int], count: int) -> tuple[bytes, bytes]:
    """What `Bits` are made of, of so many texts."""
    size, keys = (count + 7) // 8, sorted(bits)
    return array("Q", keys).tobytes(), b"".join([bits[one].to_bytes(size, "little") for one in keys])


def _made(keys: array[int], counts: Iterable[int], numbers: array[int]) -> Postings:
    out = Postings()
    out.keys, out.begins, out.numbers = keys, array("I", accumulate(counts, initial=0)), numbers
    return out


class Texts:
    """Texts by number; those that were packed are one string."""

    __slots__ = ("_begins", "_joined", "_newest")

    def __init__(self, texts: Sequence[str] = ()) -> None:
        self._newest: list[str] = []
        self._join(texts)

    @classmethod
    def read(cls, joined: str, begins: bytes) -> Texts:
        """What `kept` gave."""
        out = cls.__new__(cls)
        out._newest, out._joined, out._begins = [], joined, array("I", begins)
        return out

    def kept(self, numbers: Iterable[int]) -> tuple[str, bytes]:
        """Of these, as they are to be written."""
        out = Texts([self[number] for number in numbers])
        return out._joined, out._begins.tobytes()

    def __len__(self) -> int:
        return len(self._begins) - 1 + len(self._newest)

    def __getitem__(self, number: int) -> str:
        packed = len(self._begins) - 1
        if number >= packed:
            return self._newest[number - packed]
        return self._joined[self._begins[number] : self._begins[number + 1] - len(_APART)]

    @property
    def size(self) -> int:
        """Bytes, about."""
        return 2 * len(self._joined) + 4 * len(self._begins) + 200 * len(self._newest)

    def add(self, text: str) -> None:
        self._newest.append(text)

    def pack(self) -> None:
        self._join([self[number] for number in range(len(self))])
        self._newest = []

    def having(self, letters: str) -> list[int]:
        """Those in which these letters stand, rising."""
        found, begins, joined, at = [], self._begins, self._joined, 0
        while (at := joined.find(letters, at)) >= 0:
            number = bisect_right(begins, at) - 1
            found.append(number)
            at = begins[number + 1]
        packed = len(begins) - 1
        return found + [packed + place for place, text in enumerate(self._newest) if letters in text]

    def _join(self, texts: Sequence[str]) -> None:
        self._joined = "".join([f"{text}{_APART}" for text in texts])
        lengths = [len(text) + len(_APART) for text in texts]
        self._begins = array("I", accumulate(lengths, initial=0))
