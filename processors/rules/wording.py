"""What short groups of letters say of a message: the part of the rules that was learned from labelled messages.

Hand-written phrases are sure and few; most messages hold none. Here each group of two to four letters speaks a little
for or against each type and each band of importance, and what the phrases say is one voice among them. No package is
needed: the file is read once, and a message costs one addition for each of its groups.
"""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from operator import mul
from pathlib import Path

from msgspec import Struct

from processors import sought
from processors.models import EventType
from processors.rules.signs import NAMES, TYPES

FILE = Path(__file__).parent / "wording.tsv"
BANDS = (0.15, 0.35, 0.55, 0.75, 0.92)  # the score that stands for each band of importance
BAND_STARTS = (0.25, 0.45, 0.65, 0.85)
OUT = len(TYPES) + len(BANDS)

_SIZES = (2, 3, 4)
_LETTERS = 300  # characters that groups are taken from
_BITS = 32  # of one sum: some 900 groups, none above 2 * _OFFSET
_OFFSET = 1 << 12
_MASK = (1 << _BITS) - 1
_ONE = 1 - _OFFSET  # a field of each that adds up to their number
_PARTS = 64  # of one: signs are counted in these
SCALE = 20  # of the whole numbers in the file
_FEW = 0.01  # a type of which so little is likely says nothing of the band
NEAR = 3.0  # what being at most one band off counts beside being right
_LEAST = 1e-3  # of a band's share: nothing is impossible


def groups(plain: str) -> set[str]:
    """The groups of letters in a normalised text."""
    padded = _padded(plain)
    return {padded[at : at + size] for size in _SIZES for at in range(len(padded) - size + 1)}


def weight(plain: str) -> float:
    """What one group of a normalised text counts: the less, the more there are."""
    return 1 / math.sqrt(len(_SIZES) * (min(len(plain), _LETTERS) + 1))


def _padded(plain: str) -> str:
    return f" {plain[:_LETTERS]} "


def softmax(scores: Sequence[float], temperature: float = 1.0) -> list[float]:
    """Scores as shares of one."""
    highest, exp = max(scores), math.exp
    powers = [exp((score - highest) / temperature) for score in scores]
    total = sum(powers)
    return [power / total for power in powers]


class Told(Struct, frozen=True):
    """`types`: shares of one, in the order of TYPES; `bands`: shares of one, in the order of BANDS."""

    types: Sequence[float]
    bands: Sequence[float]


class Wording:
    """`of_groups` and `of_signs` give each group and sign OUT weights: the types', then the bands', times SCALE.
    `temperature` and `band_temperature` divide the sums, so that the shares are what they say. `usual` and `judge`: see
    `evidence` and `likely_band`. One that is `shared` has its groups found in the pass that all patterns share."""

    def __init__(
        self,
        of_groups: Mapping[str, Sequence[int]],
        of_signs: Mapping[str, Sequence[int]],
        temperature: float,
        band_temperature: float,
        usual: Sequence[Sequence[Sequence[float]]],
        judge: Sequence[Sequence[float]],
        shared: bool = False,
    ) -> None:
        self._groups = {group: _pack([*weights, _ONE]) for group, weights in of_groups.items()}
        self._shared = shared
        if shared:
            sought.beside(self._groups)
        self._signs = [_pack(of_signs[name]) for name in NAMES]
        self._temperature, self._band_temperature = temperature, band_temperature
        self.usual, self.judge = usual, judge

    @classmethod
    def read(cls, path: Path = FILE, *, shared: bool = False) -> Wording:
        """Raises OSError or ValueError for a file that `write` did not make."""
        of_groups: dict[str, list[int]] = {}
        of_signs: dict[str, list[int]] = {}
        heats: list[float] = []
        usual: list[list[list[float]]] = []
        judge: list[list[float]] = []
        for line in path.read_text(encoding="utf-8").split("\n"):
            if not line or line.startswith("# "):
                continue
            kind, name, *rest = line.split("\t")
            if kind == "group":
                of_groups[name] = [int(weight or 0) for weight in rest]
            elif kind == "sign":
                of_signs[name] = [int(weight or 0) for weight in rest]
            elif kind == "usual":
                usual.append([[float(share) for share in row.split()] for row in rest])
            elif kind == "judge":
                judge.append([float(weight) for weight in rest])
            elif kind == "temperature":
                heats.append(float(rest[0]))
            else:
                raise ValueError(f"{path.name}: no line is called {kind!r}")
        types, bands = heats
        return cls(of_groups, of_signs, types, bands, usual, judge, shared)

    def tell(self, plain: str, signs: Mapping[int, float]) -> Told:
        *said, found = _unpack(self._weighed(plain), OUT + 1)
        away, share = _OFFSET * found, weight(plain) / SCALE
        total = counted = 0
        weights = self._signs
        for at, sign in signs.items():
            times = _PARTS // 2 if sign == 0.5 else round(sign * _PARTS)  # most are so
            total += times * weights[at]
            counted += times
        also, part = _OFFSET * counted, 1 / (SCALE * _PARTS)
        shown = _unpack(total)
        scores = [(one - away) * share + (other - also) * part for one, other in zip(said, shown, strict=True)]
        cut = len(TYPES)
        return Told(softmax(scores[:cut], self._temperature), softmax(scores[cut:], self._band_temperature))

    def loudest(self, plain: str, event_type: EventType) -> str | None:
        """The group that speaks most for a type; None: none does."""
        shift = _BITS * TYPES.index(event_type)
        known = [(packed >> shift & _MASK, group) for group, packed in self._among(plain)]
        most, group = max(known, default=(0, ""))
        return group if most > _OFFSET else None

    def _weighed(self, plain: str) -> int:
        """What the groups in it weigh together, and behind that how many they are."""
        if self._shared:
            return sought.weighed(plain[:_LETTERS])
        return sum(packed for _, packed in self._among(plain))

    def _among(self, plain: str) -> list[tuple[str, int]]:
        known = self._groups
        return [(group, known[group]) for group in groups(plain) if group in known]


def write(
    path: Path,
    of_groups: Mapping[str, Sequence[int]],
    of_signs: Mapping[str, Sequence[int]],
    temperature: float,
    band_temperature: float,
    usual: Iterable[Iterable[Iterable[float]]],
    judge: Iterable[Iterable[float]],
) -> None:
    """The file that `Wording.read` reads; see there."""
    told = " ".join((*TYPES, *map(str, BANDS)))
    lines = [
        "# Written by `python -m processors.local.train` (see processors/local/SOURCES.md): weights, no messages.",
        f"# Each line: a group of letters or a sign, and its weight in twentieths for {told}",
        *(f"temperature\t{name}\t{heat:.3f}" for name, heat in (("types", temperature), ("bands", band_temperature))),
        *(
            "\t".join(("usual", name, *(" ".join(f"{share:.3f}" for share in row) for row in rows)))
            for name, rows in zip(TYPES, usual, strict=True)
        ),
        *("\t".join(("judge", str(b), *(f"{w:.3f}" for w in row))) for b, row in zip(BANDS, judge, strict=True)),
    ]
    for kind, of in (("sign", of_signs), ("group", of_groups)):
        lines += ["\t".join((kind, name, *(str(w) if w else "" for w in weights))) for name, weights in of.items()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def evidence(
    types: Sequence[float],
    bands: Sequence[float],
    reckoned: Callable[[int], int],
    usual: Sequence[Sequence[Sequence[float]]],
) -> list[float]:
    """What speaks for each band, for a judge to weigh: what the types make likely, what was learned of the bands
    themselves, and the types. `reckoned`: the band that the rules reckon for a type, by its number; `usual`: per type
    and such a band, how often which band was right."""
    a = b = c = d = e = _LEAST
    for at, share in enumerate(types):
        if share > _FEW:
            minimal, low, moderate, important, critical = usual[at][reckoned(at)]
            a += share * minimal
            b += share * low
            c += share * moderate
            d += share * important
            e += share * critical
    return [*map(math.log, [a, b, c, d, e, *[said + _LEAST for said in bands]]), *types, 1.0]


def likely_band(evidence: Sequence[float], judge: Sequence[Sequence[float]], near: float = NEAR) -> int:
    """The number of the band to name. `judge` holds, for each band, what each piece of evidence counts. One band off is
    a small mistake, two a great one: `near` is what the first counts beside being right."""
    a, b, c, d, e = softmax([sum(map(mul, evidence, weights)) for weights in judge])
    worth = (
        a + near * (a + b),
        b + near * (a + b + c),
        c + near * (b + c + d),
        d + near * (c + d + e),
        e + near * (d + e),
    )
    return worth.index(max(worth))


def _pack(weights: Sequence[int]) -> int:
    """All weights side by side in one number, so that adding up groups is one addition each."""
    fields = array("I", [max(-_OFFSET, min(_OFFSET - 1, weight)) + _OFFSET for weight in weights])
    return int.from_bytes(fields.tobytes(), sys.byteorder)


def _unpack(packed: int, fields: int = OUT) -> array[int]:
    return array("I", packed.to_bytes(fields * _BITS // 8, sys.byteorder))


@cache
def default_wording() -> Wording:
    """The one that comes with the product, read once a process."""
    return Wording.read(shared=True)
