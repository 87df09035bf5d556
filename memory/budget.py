"""How much of a model's window each part of a prompt gets: pure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from processors.model_sizes import ModelSize


@dataclass(frozen=True, slots=True)
class Tier:
    """`turns` of the conversation that such a model can make use of; the shares of its window add up to 1. `history`
    is for the conversation, what the shop says on the matter, and the message itself."""

    name: str
    turns: int
    system: float
    memory: float
    history: float
    answer: float


TINY = Tier("tiny", 3, 0.10, 0.10, 0.60, 0.20)
SMALL = Tier("small", 6, 0.10, 0.15, 0.55, 0.20)
MEDIUM = Tier("medium", 10, 0.10, 0.15, 0.60, 0.15)
LARGE = Tier("large", 15, 0.10, 0.15, 0.60, 0.15)
_UP_TO = ((3.0, TINY), (9.0, SMALL), (34.0, MEDIUM))


@dataclass(frozen=True, slots=True)
class Budget:
    """In tokens. `prompt` is all that may be sent; `memory` and `history` are parts of it, and the rest is the
    system's. What one of them does not need, the others may have."""

    tier: Tier
    window: int
    answer: int
    memory: int
    history: int

    @property
    def prompt(self) -> int:
        return self.window - self.answer

    def turns(self, most: int) -> int:
        """How many turns a prompt holds where the shop keeps `most`."""
        return min(most, self.tier.turns)


def tier_of(size: float) -> Tier:
    """`size` in billions of parameters: up to 3 is tiny, up to 9 small, up to 34 medium."""
    return next((tier for most, tier in _UP_TO if size <= most), LARGE)


@lru_cache(maxsize=256)
def budget(model: ModelSize) -> Budget:
    tier = tier_of(model.size)
    return Budget(
        tier,
        model.window,
        answer=int(model.window * tier.answer),
        memory=int(model.window * tier.memory),
        history=int(model.window * tier.history),
    )
