"""The parts of a memory as a configuration names them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from config.vault import Vault
from memory.config import MemoryConfig, MemoryRules
from memory.consolidate import Reader
from memory.conversation_files import ConversationFiles
from memory.conversations import Conversations
from memory.index.notes import Notes
from memory.lists import FileLists, KeptLists
from memory.long_term.json_files import JsonFiles
from memory.models import Message
from memory.protocols import Analyst, Catalog, LongTerm, Sessions, Transcripts
from memory.recall.sought import Meant
from memory.short_term.in_process import InProcessSessions
from memory.transcripts import TranscriptFiles
from processors.extraction import Reading, read
from processors.llm import Access, ChatModel
from processors.models import Language

if TYPE_CHECKING:
    from processors.embeddings import Embeddings
    from processors.openrouter import OpenRouter

Clock = Callable[[], datetime]
Tidy = Callable[[str, Collection[str]], Awaitable[None]]

IN_PROCESS_CONVERSATIONS = 500  # of a tenant, where nothing else is said: this process's memory is no Redis


def make_sessions(config: MemoryConfig) -> Sessions:
    if config.redis_url is None:
        return InProcessSessions(max_conversations=config.max_conversations or IN_PROCESS_CONVERSATIONS)
    # Who lives in one process needs no Redis library.
    from memory.redis_client import connect, is_cluster
    from memory.short_term.redis import RedisSessions

    client = connect(config.redis_url, cluster=config.redis_cluster)
    cluster = config.redis_cluster or is_cluster(config.redis_url)
    return RedisSessions(client, cluster=cluster, max_conversations=config.max_conversations)


def make_vault(config: MemoryConfig, rules: Callable[[str], MemoryRules]) -> Vault:
    return Vault(config.encryption_keys, lambda tenant: rules(tenant).encrypt)


def make_longterm(
    config: MemoryConfig,
    rules: Callable[[str], MemoryRules],
    clock: Clock,
    changed: Callable[[str, str], None] | None = None,
) -> LongTerm:
    if config.longterm_url is not None:
        from memory.postgres.database import Database  # with one machine nobody needs the driver
        from memory.postgres.store import PostgresLongTerm

        return PostgresLongTerm(
            Database(config.longterm_url),
            retention=lambda tenant: rules(tenant).retention,
            clock=clock,
            changed=changed,
        )
    # SQLite and all that makes rows of a person are loaded by who has files.
    from memory.index.due import DueIndex

    notes, vault = Notes(config.index), make_vault(config, rules)

    def noted(tenant: str, user: str) -> None:
        notes.note(tenant, user)
        if changed is not None:
            changed(tenant, user)

    return JsonFiles(
        config.lm_base_path,
        compression=config.lm_compression,
        retention=lambda tenant: rules(tenant).retention,
        clock=clock,
        noted=noted,
        vault=vault,
        due=DueIndex(config.index, _everybody(config, rules, clock), vault),
    )


def _everybody(config: MemoryConfig, rules: Callable[[str], MemoryRules], clock: Clock) -> JsonFiles:
    """The files as an index reads them: everybody once, which must not drive out whom the turns need."""
    return JsonFiles(
        config.lm_base_path,
        compression=config.lm_compression,
        retention=lambda tenant: rules(tenant).retention,
        clock=clock,
        cache_entries=0,
        vault=make_vault(config, rules),
    )


def make_catalog(
    config: MemoryConfig,
    rules: Callable[[str], MemoryRules],
    clock: Clock,
    tidy: Tidy | None = None,
    longterm: LongTerm | None = None,
    meant: Callable[[str, str], Awaitable[Meant]] | None = None,
) -> Catalog:
    """`meant`: what is found by meaning over a tenant; see `Finder.meant`."""
    if config.longterm_url is not None and longterm is not None:
        from memory.postgres.catalog import PostgresCatalog
        from memory.postgres.store import PostgresLongTerm

        assert isinstance(longterm, PostgresLongTerm)  # what is listed is what it holds
        return PostgresCatalog(longterm, tidy=tidy, clock=clock)
    from memory.index.catalog import SqliteCatalog  # SQLite is loaded by whoever asks for a list

    source = _everybody(config, rules, clock)
    return SqliteCatalog(config.index, source, tidy=tidy, meant=meant, clock=clock, vault=make_vault(config, rules))


def make_transcripts(
    config: MemoryConfig, rules: Callable[[str], MemoryRules], clock: Clock, longterm: LongTerm | None = None
) -> Transcripts:
    if config.longterm_url is not None and longterm is not None:
        from memory.postgres.said import PostgresTranscripts
        from memory.postgres.store import PostgresLongTerm

        assert isinstance(longterm, PostgresLongTerm)
        return PostgresTranscripts(longterm.database, clock=clock)
    return TranscriptFiles(config.transcripts, clock=clock, vault=make_vault(config, rules))


def make_conversations(config: MemoryConfig, vault: Vault, longterm: LongTerm | None = None) -> Conversations:
    if config.longterm_url is not None and longterm is not None:
        from memory.postgres.conversations import PostgresConversations
        from memory.postgres.store import PostgresLongTerm

        assert isinstance(longterm, PostgresLongTerm)
        return PostgresConversations(longterm.database)
    return ConversationFiles(config.conversations, vault)


def make_lists(config: MemoryConfig) -> KeptLists:
    if config.longterm_url is not None:
        from memory.postgres.lists import PostgresLists

        return PostgresLists(config.longterm_url)
    return FileLists(config.data_dir)


class MadeEmbeddings:
    """For all tenants the same; made when first searched."""

    def __init__(self, config: MemoryConfig) -> None:
        self._config = config
        self._made: list[Embeddings | None] = []

    def of(self, tenant: str) -> Embeddings | None:
        if not self._made:
            from processors.embeddings import make

            access = Access(self._config.openrouter_api_key, self._config.openrouter_base_url)
            self._made.append(make(self._config.embeddings, access))
        return self._made[0]

    async def close(self) -> None:
        for one in self._made:
            if one is not None:
                await one.close()


def make_model(config: MemoryConfig) -> OpenRouter | None:
    """None without a key: the rules do what a model would."""
    if config.openrouter_api_key is None:
        return None
    from processors.openrouter import OpenRouter

    return OpenRouter()


def make_processor(config: MemoryConfig, model: OpenRouter | None) -> Analyst:
    from processors.event_processor import EventProcessor

    return EventProcessor(config.openrouter_api_key, config.openrouter_model, config.openrouter_base_url, llm=model)


def make_reader(config: MemoryConfig, model: OpenRouter | None) -> Reader | None:
    if model is None:
        return None
    access = Access(
        api_key=config.openrouter_api_key, base_url=config.openrouter_base_url, model=config.openrouter_model
    )
    return reader(lambda _: (model, access))


def reader(model_of: Callable[[str], tuple[ChatModel, Access]]) -> Reader:
    """Reads sessions with each tenant's own model."""

    async def read_session(
        tenant: str, messages: Sequence[Message], before: str, known: Mapping[str, Any], language: Language | None
    ) -> Reading:
        model, access = model_of(tenant)
        return await read(model, access, messages, before, known, language)

    return read_session
