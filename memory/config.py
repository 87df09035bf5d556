"""How a memory is set up, for those who use it as a library; the gateway fills it from its settings."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from memory.retention import Retention


class MemoryRules(BaseModel):
    """What a tenant may set for itself. Times in seconds; an `sm_ttl` of 0 means no expiry by idleness."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sm_ttl: float = Field(default=1800.0, ge=0)
    max_turns: int = Field(default=10, ge=1)
    importance_threshold: float = Field(default=0.5, ge=0.0, le=1.0)
    max_events_per_user: int = Field(default=1000, ge=1)
    event_retention_days: int = Field(default=365, ge=1)
    encrypt: bool = True  # what lies on disk, where there is a key

    @property
    def retention(self) -> Retention:
        return _retention(self.max_events_per_user, self.event_retention_days)

    @property
    def max_messages(self) -> int:
        return 2 * self.max_turns


_retention = lru_cache(256)(Retention)  # each turn asks for it


class MemoryConfig(BaseModel):
    """Everything a MemoryManager needs. Raises ValueError (pydantic) that names the field and what is wrong.

    `redis_url` None: sessions live in this process. `longterm_url` None: JSON files under `lm_base_path`, else
    PostgreSQL. `transcripts_path` None: `transcripts` beside `lm_base_path`.
    `openrouter_api_key` None: rules classify. `embeddings`: `local` or `local-e5` (where installed), `none`, or a model
    at `openrouter_base_url`. `transcript_retention_days` 0: transcripts are kept. `knowledge_path`: the folder with a
    folder of files for each tenant; None: there are none. `encryption_keys`: see `config.vault`; without any nothing is
    encrypted.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    redis_url: str | None = None
    redis_cluster: bool = False
    sm_ttl: float = Field(default=1800.0, ge=0)
    max_turns: int = Field(default=10, ge=1)
    max_conversations: int = Field(default=0, ge=0)
    lm_base_path: Path = Path("data/longterm")
    longterm_url: str | None = Field(default=None, repr=False)
    lm_compression: Literal["none", "gzip", "zstd"] = "none"
    max_events_per_user: int = Field(default=1000, ge=1)
    event_retention_days: int = Field(default=365, ge=1)
    importance_threshold: float = Field(default=0.5, ge=0.0, le=1.0)
    transcripts_path: Path | None = None
    transcript_retention_days: int = Field(default=0, ge=0)
    openrouter_api_key: str | None = Field(default=None, repr=False)
    openrouter_model: str = "openai/gpt-4o-mini"
    openrouter_base_url: str = "https://openrouter.ai/api/v1"
    embeddings: str = "local"
    knowledge_path: Path | None = None
    encryption_keys: tuple[bytes, ...] = Field(default=(), repr=False)
    encrypt: bool = True

    @property
    def rules(self) -> MemoryRules:
        return MemoryRules(**{name: getattr(self, name) for name in MemoryRules.model_fields})

    @property
    def transcripts(self) -> Path:
        return self.transcripts_path or self.lm_base_path.parent / "transcripts"

    @property
    def media(self) -> Path:
        return self.lm_base_path.parent / "media"

    @property
    def index(self) -> Path:
        return self.lm_base_path.parent / "index"

    @property
    def unanswered(self) -> Path:
        return self.lm_base_path.parent / "unanswered"

    @property
    def archive(self) -> Path:
        return self.lm_base_path.parent / "archive"

    @property
    def conversations(self) -> Path:
        return self.lm_base_path.parent / "conversations"

    @property
    def data_dir(self) -> Path:
        return self.lm_base_path.parent
