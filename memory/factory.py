"""Where the memory's objects are put together, for those who use it as a library."""

from __future__ import annotations

from memory.config import MemoryConfig
from memory.memory_manager import MemoryManager


class MemoryManagerFactory:
    """Makes managers; their stores are connected when first used."""

    @staticmethod
    def create_from_config(config: MemoryConfig) -> MemoryManager:
        return MemoryManager(config)
