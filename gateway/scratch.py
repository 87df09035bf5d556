"""What a plan of several steps has in mind while it is carried out: in this process alone, gone when the plan ends."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

PLANS = 1000  # carried out at once; beyond that the oldest one begins again with nothing in mind
STEPS = 20  # of one plan
CHARACTERS = 60_000  # of what tools told in one plan; the oldest step goes first

Step = Sequence[Mapping[str, Any]]  # chat messages: what the model asked for, and what came of it


class Scratch:
    """Plans by their `planId`. Whoever forgets to end one is bounded all the same."""

    def __init__(self, plans: int = PLANS, steps: int = STEPS, characters: int = CHARACTERS) -> None:
        self._plans: OrderedDict[str, tuple[Step, ...]] = OrderedDict()
        self._most = plans
        self._steps = steps
        self._characters = characters

    @contextmanager
    def plan(self) -> Iterator[str]:
        """A new plan's id; it ends with the body, however that ends."""
        plan_id = secrets.token_hex(8)
        self._plans[plan_id] = ()
        while len(self._plans) > self._most:
            self._plans.popitem(last=False)
        try:
            yield plan_id
        finally:
            self.clear(plan_id)

    def get(self, plan_id: str) -> list[Mapping[str, Any]]:
        """What the plan's steps so far left, oldest first."""
        return [message for step in self._plans.get(plan_id, ()) for message in step]

    def clear(self, plan_id: str) -> None:
        self._plans.pop(plan_id, None)

    def add(self, plan_id: str, step: Step) -> None:
        """Cleared and built anew with the step: what no longer fits goes, whole steps at a time, the newest never."""
        steps = [*self._plans.get(plan_id, ()), tuple(step)][-self._steps :]
        self.clear(plan_id)
        while len(steps) > 1 and sum(map(_length, steps)) > self._characters:
            steps.pop(0)
        self._plans[plan_id] = tuple(steps)

    def __len__(self) -> int:
        return len(self._plans)


def _length(step: Step) -> int:
    return sum(len(str(message.get("content") or "")) for message in step)
