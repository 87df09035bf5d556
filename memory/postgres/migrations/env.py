"""Run by Alembic, on the connection that `memory.postgres.migrate` holds: with its lock, in its transaction."""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    version_table="migrations",
    version_table_schema="chat_chat",
)
context.run_migrations()
