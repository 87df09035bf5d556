"""Where the memory's objects are put together, for those who use it as a library."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from memory.config import MemoryConfig, MemoryRules
from memory.consolidate import Consolidation
from memory.long_term.json_files import JsonFiles
from memory.memory_manager import Analyst, MemoryManager
from memory.openings import Openings
from memory.protocols import LongTerm, Sessions, Transcripts
from memory.remember import Remember
from memory.short_term.in_process import InProcessSessions
from memory.transcripts import TranscriptFiles

Clock = Callable[[], datetime]

IN_PROCESS_CONVERSATIONS = 500  # of a tenant, where nothing else is said: this process's memory is no Redis


class MemoryManagerFactory:
    """Makes managers; the stores are connected when first used."""

    @staticmethod
    def create_from_config(config: MemoryConfig) -> MemoryManager:
        return MemoryManager(config)


def make_sessions(config: MemoryConfig) -> Sessions:
    if config.redis_url is None:
        return InProcessSessions(max_conversations=config.max_conversations or IN_PROCESS_CONVERSATIONS)
    # Who lives in one process needs no Redis library.
    from memory.redis_client import connect
    from memory.short_term.redis import RedisSessions

    client = connect(config.redis_url, cluster=config.redis_cluster)
    return RedisSessions(client, cluster=config.redis_cluster, max_conversations=config.max_conversations)


def make_longterm(config: MemoryConfig, clock: Clock) -> LongTerm:
    return JsonFiles(config.lm_base_path, compression=config.lm_compression, retention=config.retention, clock=clock)


def make_transcripts(config: MemoryConfig, clock: Clock) -> Transcripts:
    return TranscriptFiles(config.transcripts, clock=clock)


def make_processor(config: MemoryConfig) -> Analyst:
    from processors.event_processor import EventProcessor

    return EventProcessor(config.openrouter_api_key, config.openrouter_model, config.openrouter_base_url)


def make_remember(longterm: LongTerm) -> Remember:
    from processors.summary import summarise_events

    from processors.payload import attributes_from

    return Remember(longterm, attributes_from=attributes_from, summarise=summarise_events)


def make_consolidation(longterm: LongTerm) -> Consolidation:
    from processors.summary import summarise_session

    return Consolidation(longterm, summarise=summarise_session)


def make_openings(
    longterm: LongTerm, transcripts: Transcripts, consolidation: Consolidation, rules: Callable[[str], MemoryRules]
) -> Openings:
    return Openings(longterm, transcripts, consolidation, rules)
