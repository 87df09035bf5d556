"""`chat-chat migrate`, `chat-chat longterm`: long-term memory in a database."""

from __future__ import annotations

import click

from gateway.cli.common import EXAMPLE, guarded, read_settings


@click.command(epilog=EXAMPLE + "chat-chat migrate --url postgresql://owner@db/chat_chat")
@click.option("--url", help="Of a user who may make tables; LONGTERM_URL unless it is given.")
@guarded
def migrate(url: str | None) -> None:
    """Gives the database at LONGTERM_URL the tables that this version needs.

    Safe while the bot runs, the older version too, and when several call it at once.
    """
    from gateway import longterm_commands

    for line in longterm_commands.migrate(read_settings(), url):
        click.echo(line)
