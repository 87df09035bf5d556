"""What a call to a language model costs: as the endpoint tells, else by a list of prices that a file can bring up to
date while we run."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from processors.llm import Usage

log = logging.getLogger(__name__)

LOOK_EVERY = 5.0  # seconds between looks at the file
_FOUND = 1000  # names of models whose price is kept at hand
_MILLION = 1_000_000
_DATED = re.compile(r"-(?:\d{4}-\d{2}-\d{2}|\d{8}|\d{4})$")


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars a token, or a minute of sound."""

    input: float = 0.0
    output: float = 0.0
    cached: float | None = None  # None: as `input`
    minute: float | None = None  # None: it is paid by tokens

    def of(self, prompt: int, completion: int, cached: int = 0, seconds: float = 0.0) -> float:
        if self.minute is not None:
            return self.minute * seconds / 60
        cheap = self.input if self.cached is None else self.cached
        return (prompt - cached) * self.input + cached * cheap + completion * self.output


# Set aside for a call whose price nobody knows, until its cost is told: dear, so that a limit is not run over.
DEAR = Price(3.0 / _MILLION, 15.0 / _MILLION)


class Prices:
    """`own`: the operator's file, which need not exist. A wrong one is told in the log, and the last good one stays."""

    def __init__(self, own: Path | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._own = own
        self._clock = clock
        self._looked: float | None = None
        self._stamp: tuple[int, int] | None = None
        self._added: Mapping[str, Price] = {}
        self._found: dict[str, Price | None] = {}  # by a model's name

    def of(self, model: str) -> Price | None:
        """By the model's whole name, else without its maker, its date, or what follows a colon."""
        self._look()
        if model not in self._found:
            if len(self._found) >= _FOUND:
                self._found.clear()
            prices = (self._added.get(name) or _built_in().get(name) for name in _names(model))
            self._found[model] = next(filter(None, prices), None)
        return self._found[model]

    def cost(self, model: str, usage: Usage) -> float | None:
        """US dollars; None: neither the endpoint nor the list tells."""
        if usage.cost is not None:
            return usage.cost
        price, took = self.of(model), usage
        return price.of(took.prompt_tokens, took.completion_tokens, took.cached_tokens, took.seconds) if price else None

    def _look(self) -> None:
        now = self._clock()
        if self._own is None or (self._looked is not None and now - self._looked < LOOK_EVERY):
            return
        self._looked = now
        try:
            found = self._own.stat()
            stamp = found.st_mtime_ns, found.st_size
            if stamp != self._stamp:
                self._stamp, self._found = stamp, {}
                self._added = read(self._own.read_text(encoding="utf-8-sig"))
        except FileNotFoundError:
            if self._stamp is not None:
                self._stamp, self._added, self._found = None, {}, {}
        except (OSError, ValueError) as error:
            log.error("%s is left aside: %s", self._own, error)


def read(text: str) -> dict[str, Price]:
    """Raises ValueError, which names the model."""
    try:
        data: Any = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"it is no YAML ({type(error).__name__})") from None
    if not isinstance(data, dict):
        raise ValueError("write one model a line, such as `openai/gpt-4o-mini: {input: 0.15, output: 0.60}`")
    return {
        key: price for name, given in data.items() for price in [_price(str(name), given)] for key in _names(str(name))
    }


def _price(name: str, given: Any) -> Price:
    fields = given if isinstance(given, dict) else {}
    wrong = set(fields) - {"input", "output", "cached"} or {"input", "output"} - set(fields)
    wrong = wrong if set(fields) != {"minute"} else set()
    numbers = [value for value in fields.values() if isinstance(value, int | float) and not isinstance(value, bool)]
    if wrong or len(numbers) != len(fields) or min(numbers) < 0:
        raise ValueError(
            f"{name}: write {{input: …, output: …}}, US dollars a million tokens, and cached: … if you like; or "
            "{minute: …}, US dollars a minute of sound"
        )
    return Price(**{field: value if field == "minute" else value / _MILLION for field, value in fields.items()})


def _names(model: str) -> list[str]:
    whole = model.lower()
    plain = whole.partition(":")[0]
    bare = plain.rpartition("/")[2]
    return list(dict.fromkeys([whole, plain, bare, _DATED.sub("", bare)]))


@cache
def _built_in() -> Mapping[str, Price]:
    return read((Path(__file__).parent / "prices.yaml").read_text(encoding="utf-8"))
