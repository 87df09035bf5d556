"""The persons that are held in memory."""

from __future__ import annotations

from dataclasses import dataclass

from memory.long_term.cache import Cache


@dataclass(frozen=True)
class Person:
    bytes: int


def test_one_too_large_to_be_held_drives_out_nobody() -> None:
    held: Cache[Person] = Cache(10, 100)
    ann, ben, large = Person(40), Person(60), Person(101)
    held.put(("shop", "ann"), ann)
    held.put(("shop", "ben"), ben)
    held.put(("shop", "large"), large)
    assert [held.get(("shop", name)) for name in ("ann", "ben", "large")] == [ann, ben, None]


def test_one_who_grew_too_large_is_no_longer_held_as_before() -> None:
    held: Cache[Person] = Cache(10, 100)
    ann = Person(40)
    held.put(("shop", "ann"), ann)
    held.put(("shop", "ben"), Person(60))
    held.put(("shop", "ben"), Person(101))
    assert (held.get(("shop", "ann")), held.get(("shop", "ben"))) == (ann, None)
    held.put(("shop", "eve"), Person(60))
    assert held.get(("shop", "ann")) == ann
