"""The database's tables brought to what this version needs. Alembic is loaded by this file alone: by who migrates."""

from __future__ import annotations

from pathlib import Path

import psycopg
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from memory.errors import LongTermUnavailable

_LOCK = 0x636861742D636861  # one number for all of ours: two migrations wait for each other
_WAIT = "120s"  # for another one, and for what is in the way of a table


def migrate(url: str) -> list[str]:
    """The steps that were taken, oldest first; none where everything was there. All of them or none is taken. Any
    number may call it at once. Blocks.

    Raises LongTermUnavailable where the database can't be reached or refuses it.
    """
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    try:
        engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(url), poolclass=NullPool)
        with engine.begin() as connection:
            connection.execute(text(f"SET LOCAL lock_timeout = '{_WAIT}'"))
            connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
            if connection.scalar(text("SELECT current_setting('server_encoding')")) != "UTF8":
                raise LongTermUnavailable("the database is not of the encoding UTF8: make it anew with ENCODING 'UTF8'")
            before = _at(connection)
            if before is None:  # who may make tables need not be allowed to make a schema that is there
                connection.execute(text("CREATE SCHEMA IF NOT EXISTS chat_chat"))
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
            steps = [one.revision for one in ScriptDirectory.from_config(config).walk_revisions()][::-1]
            return [step for step in steps if before is None or step > before]
    except DBAPIError as error:
        raise LongTermUnavailable(f"the database can't be migrated: {' '.join(str(error.orig).split())}") from error
    except psycopg.Error as error:
        raise LongTermUnavailable(f"the database can't be reached: {' '.join(str(error).split())}") from error


def _at(connection: Connection) -> str | None:
    """The last step that was taken; None: none was."""
    if connection.scalar(text("SELECT to_regclass('chat_chat.migrations')")) is None:
        return None
    found: str | None = connection.scalar(text("SELECT max(version_num) FROM chat_chat.migrations"))
    return found
