"""What can go wrong in the memory.

MemoryFault
├── SessionsUnavailable   Redis can't be reached
├── LongTermUnavailable   the long-term store can't be read or written just now
├── CatalogUnavailable    the lists over a tenant are being made, or can't be read just now
├── Ambiguous             several persons have a record of one id
├── WasForgotten          an import holds what was said before its person was forgotten
├── Changed               what was to be changed is not what was seen any more
└── SessionConflict       a session changed under our hands more often than we try
"""

from __future__ import annotations


class MemoryFault(Exception):
    """The memory could not do what was asked."""


class SessionsUnavailable(MemoryFault):
    """Short-term memory can't be reached."""


class LongTermUnavailable(MemoryFault):
    """Long-term memory can't be read or written just now."""


class CatalogUnavailable(MemoryFault):
    """The lists over a tenant can't be given just now."""


class Ambiguous(MemoryFault):
    """Several persons have a record of this id: say whose is meant."""


class Changed(MemoryFault):
    """It was changed meanwhile: look at it again."""


class WasForgotten(MemoryFault):
    """What is to be taken in was said by somebody before they were forgotten."""


class SessionConflict(MemoryFault):
    """A session was changed by somebody else at every try."""
