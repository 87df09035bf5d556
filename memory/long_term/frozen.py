"""Payloads that can be given to many readers: dicts and lists that refuse to be changed.

They are dicts and lists in every other way (equality, JSON, `isinstance`); a copy of one is an ordinary one.
"""

from __future__ import annotations

from typing import Any, NoReturn


def _refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise TypeError("this belongs to long-term memory and is shared: change a copy of it")


class FrozenDict(dict[str, Any]):
    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __copy__(self) -> dict[str, Any]:
        return dict(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return {key: thawed(value) for key, value in self.items()}

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


class FrozenList(list[Any]):
    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = append = clear = extend = insert = pop = remove = _refuse
    reverse = sort = _refuse

    def __copy__(self) -> list[Any]:
        return list(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        return [thawed(value) for value in self]

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)


def frozen(value: Any) -> Any:
    """The same JSON value, unchangeable all the way down."""
    if isinstance(value, dict):
        return FrozenDict((key, frozen(item)) for key, item in value.items())
    if isinstance(value, list):
        return FrozenList(frozen(item) for item in value)
    return value


def thawed(value: Any) -> Any:
    """An ordinary copy of it, all the way down."""
    if isinstance(value, dict):
        return {key: item if item.__class__ is str else thawed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [item if item.__class__ is str else thawed(item) for item in value]
    return value
