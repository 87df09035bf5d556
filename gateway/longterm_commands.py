"""What `chat-chat migrate` and `chat-chat longterm` do."""

from __future__ import annotations

from config.settings import Settings
from gateway.cli import Failed


def migrate(settings: Settings, url: str | None) -> list[str]:
    """The database at `url`, else at LONGTERM_URL, gets the tables of this version."""
    from memory.postgres.migrate import migrate

    where = url or settings.longterm_url
    if where is None:
        raise Failed("LONGTERM_URL is unset: long-term memory is JSON files, which need no migration")
    return [f"taken: {step}" for step in migrate(where)] or ["the database has everything that this version needs"]
