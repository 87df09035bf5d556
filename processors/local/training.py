"""Training and measuring: the local classifier, and what the rules know of the wording. Needs nothing but numpy."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from processors.language import detect
from processors.local.classifier import NEAR, Classifier, Weights, probabilities
from processors.local.features import TYPES, rarity, row
from processors.local.vectors import Vectors
from processors.models import EventType
from processors.normalise import normalise
from processors.rules import Rules, default_rules, wording
from processors.rules.engine import reckoned, scores_of
from processors.rules.importance import Found
from processors.rules.signs import NAMES, in_line, signs
from processors.rules.wording import BAND_STARTS, BANDS, evidence, likely_band

WRITTEN = Path(__file__).parent / "messages.tsv"
_FLATNESS = 1e-3  # how strongly weights are drawn to zero
_STEPS = 200
_SEEN_TWICE = 2  # messages that a group of letters must stand in
_LETTERS_WEIGH = 0.6  # of a group of letters, in the scale of the signs
_FAINT = 0.4  # a group none of whose weights is above is left out: half of them, and no answer differs
_DIRECTIONS = 1100  # in which the examples differ most: nine tenths of all that they differ in
_STRANGE = 3.0  # what others' messages count beside those written for training, where evidence for a band is weighed
_CORRECTION = 4.0  # what a correction of the shop's own people counts beside one message of the training set


@dataclass(frozen=True, slots=True)
class Example:
    """One labelled message. `importance` is a score inside its band; None: not judged."""

    text: str
    event_type: EventType
    importance: float | None = None
    also: frozenset[EventType] = frozenset()  # types that a careful second reader could defend
    language: str = ""
    weight: float = 1.0
    found: bool = False  # somebody wrote it to somebody, and not for training


@dataclass(frozen=True, slots=True)
class Measured:
    """Out-of-fold results: `shares` (examples, 8) are calibrated probabilities, `bands` (examples,) band numbers."""

    shares: Any
    bands: Any
    temperature: float
    band_temperature: float
    judge: Any  # see `likely_band`


def written() -> list[Example]:
    """The messages that were written by hand for training."""
    examples = []
    for line in WRITTEN.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            label, importance, also, text = line.split("\t")
            others = frozenset(EventType(name) for name in also.split(",") if name)
            examples.append(Example(text, EventType(label), float(importance), others))
    return examples


def labelled(path: Path) -> list[Example]:
    """The messages of a JSON Lines file with `text`, `label`, `also_ok`, `importance_band` ("0.5-0.6"), `language`,
    and `source` where others wrote them."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [
        Example(
            r["text"],
            EventType(r["label"]),
            float(r["importance_band"][:3]) + 0.05,
            frozenset(map(EventType, r.get("also_ok", ()))),
            r.get("language", ""),
            found="source" in r,
        )
        for r in rows
    ]


def train(base: Sequence[Example], corrections: Iterable[Example], vectors: Vectors) -> Classifier:
    """A classifier from the base examples and a shop's own corrections, which count more. Takes about half a minute of
    one core for fifteen hundred examples: run it in a process of its own."""
    examples = [*base, *(replace(c, weight=_CORRECTION * c.weight) for c in corrections)]
    seen = _seen(examples)
    weights = rarity([example.text for example in examples])
    table = _Table(examples, seen, _rows(examples, seen, vectors, weights))
    types, bands = table.fit()
    told = table.measure(len(examples), 3, NEAR)
    found = Weights(types, bands, weights, told.temperature, told.band_temperature, table.usual(), told.judge)
    return Classifier(found, vectors)


def measure(examples: Sequence[Example], always: Sequence[Example], vectors: Vectors, folds: int = 5) -> Measured:
    """Cross-validation of the classifier over `examples`; `always` are trained with as well and never measured: each
    fold leaves out a part of them too."""
    every = [*examples, *always]
    seen = _seen(every)
    rows = _rows(every, seen, vectors, rarity([example.text for example in every]))
    return _Table(every, seen, rows).measure(len(examples), folds, NEAR)


def train_wording(examples: Sequence[Example], path: Path) -> int:
    """Writes what the rules know of the wording (see `processors.rules.wording`); how many groups that is."""
    seen = _seen(examples)
    vocabulary, rows = _wording_rows(seen)
    table = _Table(examples, seen, rows)
    told = table.measure(len(examples), 5, wording.NEAR)
    whole = np.hstack(table.fit()) * wording.SCALE
    letters = np.rint(whole[: len(vocabulary)] * np.array(list(vocabulary.values()))[:, None]).astype(int)
    least = _FAINT * wording.SCALE
    of_groups = {
        group: weights.tolist()
        for group, weights in zip(vocabulary, letters, strict=True)
        if abs(weights).max() > least
    }
    of_signs = dict(zip(NAMES, np.rint(whole[len(vocabulary) :]).astype(int).tolist(), strict=True))
    usual, judge = table.usual().tolist(), told.judge.tolist()
    wording.write(path, of_groups, of_signs, told.temperature, told.band_temperature, usual, judge)
    return len(of_groups)


def measure_wording(examples: Sequence[Example], always: Sequence[Example], folds: int = 5) -> Measured:
    """Cross-validation of the rules with what they know of the wording, each message's own phrases left out."""
    seen = _seen([*examples, *always])
    return _Table([*examples, *always], seen, _wording_rows(seen)[1]).measure(len(examples), folds, wording.NEAR)


def calibration_error(shares: Any, right: Any, bins: int = 10) -> float:
    """Expected calibration error: how far confidence lies from the share that is right, weighted over bins."""
    confidence = shares.max(axis=1)
    place = np.minimum((confidence * bins).astype(int), bins - 1)
    gaps = [
        (place == b).mean() * abs(confidence[place == b].mean() - right[place == b].mean())
        for b in range(bins)
        if (place == b).any()
    ]
    return float(sum(gaps))


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the rules make of an example that they had not been written for."""

    plain: str
    signs: Mapping[int, float]
    reckoned: Sequence[int]


def _seen(examples: Sequence[Example], rules: Rules | None = None) -> list[_Seen]:
    """Without the phrases that fire on this one example alone: else training would learn to trust the rules more than
    they deserve."""
    rules = rules or default_rules()
    hits = [rules.hits(example.text) for example in examples]
    fired = Counter((t, name) for found in hits for t, names in found.items() for name in names)
    out = []
    for example, found in zip(examples, hits, strict=True):
        plain, marks = normalise(example.text), rules.marks(example.text)
        kept = {t: {n: w for n, w in names.items() if fired[t, n] > 1} for t, names in found.items()}
        scores = scores_of({t: names for t, names in kept.items() if names}, plain)
        told = signs(plain, detect(example.text), scores, marks)
        out.append(_Seen(plain, told, list(map(reckoned(Found(plain, marks, scores)), range(len(TYPES))))))
    return out


def _rows(examples: Sequence[Example], seen: Sequence[_Seen], vectors: Vectors, weights: Any) -> Any:
    texts = [example.text for example in examples]
    return np.stack([row(t, v, s.signs, weights) for t, v, s in zip(texts, vectors.encode(texts), seen, strict=True)])


def _wording_rows(seen: Sequence[_Seen]) -> tuple[dict[str, float], Any]:
    """The groups of letters with what each weighs, the rarer the more; and the rows: groups, then signs."""
    found = [wording.groups(one.plain) for one in seen]
    often = Counter(group for each in found for group in each)
    vocabulary = {
        group: _LETTERS_WEIGH * math.log((1 + len(seen)) / (1 + count))
        for group, count in sorted(often.items())
        if count >= _SEEN_TWICE
    }
    place = {group: at for at, group in enumerate(vocabulary)}
    heavy = np.array(list(vocabulary.values()), np.float32)
    rows: Any = np.zeros((len(seen), len(vocabulary) + len(NAMES)), np.float32)
    for at, (each, one) in enumerate(zip(found, seen, strict=True)):
        known = [place[group] for group in each if group in place]
        rows[at, known] = heavy[known] * wording.weight(one.plain)
        rows[at, len(vocabulary) :] = in_line(one.signs)
    return vocabulary, rows


class _Table:
    """Examples as rows, turned into the few directions in which they differ most: what the weights need lies among
    these, and fitting becomes many times cheaper."""

    def __init__(self, examples: Sequence[Example], seen: Sequence[_Seen], rows: Any) -> None:
        self._whole = rows
        lengths, turn = np.linalg.eigh((rows @ rows.T).astype(np.float64))
        kept = np.flatnonzero(lengths > 1e-5)[-_DIRECTIONS:]
        self._turn = turn[:, kept] / np.sqrt(lengths[kept])
        self._rows = (turn[:, kept] * np.sqrt(lengths[kept])).astype(np.float32)
        self._types = np.array([TYPES.index(example.event_type) for example in examples])
        judged = [example.importance for example in examples]
        self._bands = np.array([-1 if j is None else int(np.searchsorted(BAND_STARTS, j, "right")) for j in judged])
        self._weights = np.array([example.weight for example in examples])
        self._strange = np.array([_STRANGE if example.found else 1.0 for example in examples])
        self._reckoned = [one.reckoned for one in seen]

    def fit(self) -> tuple[Any, Any]:
        """The weights of types (columns, 8) and bands (columns, 5), for the rows as they were given."""
        back = self._whole.T @ self._turn.astype(np.float32)
        whole = back @ self._fitted(np.arange(len(self._rows)))
        return whole[:, : len(TYPES)], whole[:, len(TYPES) :]

    def usual(self, chosen: Any = None) -> Any:
        """For a type and the band that the rules reckon, how often which band was right: (8, 5, 5), rows of one."""
        counts = np.full((len(TYPES), len(BANDS), len(BANDS)), 0.3)
        for at in range(len(self._rows)) if chosen is None else chosen:
            if self._bands[at] >= 0:
                counts[self._types[at], self._reckoned[at][self._types[at]], self._bands[at]] += 1
        # Where a pair was seldom seen, what is usual for the type has its say.
        of_type = counts.sum(axis=1, keepdims=True)
        counts += 2 * of_type / of_type.sum(axis=2, keepdims=True)
        return counts / counts.sum(axis=2, keepdims=True)

    def measure(self, count: int, folds: int, near: float) -> Measured:
        """Of the first `count` examples. What weighs the evidence for a band is learned without their fold too."""
        fold = np.random.default_rng(0).permutation(len(self._rows)) % folds
        scores: Any = np.zeros((len(self._rows), len(TYPES) + len(BANDS)), np.float32)
        for number in range(folds):
            held = fold == number
            scores[held] = self._rows[held] @ self._fitted(np.flatnonzero(~held))
        of_types, of_bands = np.hsplit(scores, [len(TYPES)])
        judged = self._bands >= 0
        measured = np.arange(len(fold)) < count
        temperature = _temperature(of_types[measured], self._types[measured])
        band_temperature = _temperature(of_bands[measured & judged], self._bands[measured & judged])
        shares, told = probabilities(of_types / temperature), probabilities(of_bands / band_temperature)
        usual = [self.usual(np.flatnonzero(fold != number)).tolist() for number in range(folds)]
        speaks = np.array(
            [
                evidence(s.tolist(), b.tolist(), r.__getitem__, usual[f])
                for s, b, r, f in zip(shares, told, self._reckoned, fold, strict=True)
            ]
        )
        judges = [self._judge(speaks, judged & (fold != number)).tolist() for number in range(folds)]
        found = [likely_band(speaks[at].tolist(), judges[fold[at]], near) for at in range(count)]
        judge = self._judge(speaks, judged)
        return Measured(shares[:count], np.array(found), temperature, band_temperature, judge)

    def _judge(self, speaks: Any, chosen: Any) -> Any:
        """What each piece of evidence counts for each band: (5, pieces)."""
        wanted: Any = np.eye(len(BANDS), dtype=np.float32)[self._bands[chosen]]
        weights = (self._weights * self._strange)[chosen]
        return _logistic(speaks[chosen].astype(np.float32), [(wanted, weights)]).T

    def _fitted(self, chosen: Any) -> Any:
        types: Any = np.eye(len(TYPES), dtype=np.float32)[self._types[chosen]]
        bands: Any = np.eye(len(BANDS), dtype=np.float32)[self._bands[chosen]]
        weights = self._weights[chosen]
        return _logistic(self._rows[chosen], [(types, weights), (bands, weights * (self._bands[chosen] >= 0))])


def _logistic(rows: Any, wanted: Sequence[tuple[Any, Any]]) -> Any:
    """Multinomial logistic regressions over the same rows by Adam, whole batches, side by side: (columns, classes of
    all). Each is wanted as (rows, classes) with each row's weight."""
    shares = [(weights / weights.sum())[:, None].astype(np.float32) for _, weights in wanted]
    ends = np.cumsum([each.shape[1] for each, _ in wanted])
    found: Any = np.zeros((rows.shape[1], ends[-1]), np.float32)
    first, second, turned = np.zeros_like(found), np.zeros_like(found), np.ascontiguousarray(rows.T)
    for step in range(1, _STEPS + 1):
        scores = np.hsplit(rows @ found, ends[:-1])
        off = [(probabilities(s) - w) * share for s, (w, _), share in zip(scores, wanted, shares, strict=True)]
        slope = turned @ np.hstack(off) + _FLATNESS * found
        first = 0.9 * first + 0.1 * slope
        second = 0.999 * second + 0.001 * slope * slope
        found -= 0.05 * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
    return found


def _temperature(scores: Any, labels: Any) -> float:
    """The divisor of the scores that makes the labels likeliest."""
    candidates = np.geomspace(0.3, 3.0, 60)
    picked = np.arange(len(labels))
    losses = [-np.log(probabilities(scores / t)[picked, labels] + 1e-12).mean() for t in candidates]
    return float(candidates[int(np.argmin(losses))])
