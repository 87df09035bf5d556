"""Short-term and long-term memory of many tenants' users.

The names are loaded when they are first asked for, so that `import memory.keys` stays cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memory.config import MemoryConfig
    from memory.factory import MemoryManagerFactory
    from memory.memory_manager import MemoryManager
    from memory.models import LongTermMemory, ShortTermMemory
    from processors.models import MemoryEvent

__all__ = [
    "LongTermMemory",
    "MemoryConfig",
    "MemoryEvent",
    "MemoryManager",
    "MemoryManagerFactory",
    "ShortTermMemory",
]

_HOMES = {
    "LongTermMemory": "memory.models",
    "MemoryConfig": "memory.config",
    "MemoryEvent": "processors.models",
    "MemoryManager": "memory.memory_manager",
    "MemoryManagerFactory": "memory.factory",
    "ShortTermMemory": "memory.models",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)
