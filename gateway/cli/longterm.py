"""`chat-chat migrate`, `chat-chat longterm`: long-term memory in a database."""

from __future__ import annotations

import click

from gateway.cli.common import EXAMPLE, guarded, in_loop, progress_bar, read_settings


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


@click.group()
def longterm() -> None:
    """Where long-term memory is kept: JSON files or PostgreSQL."""


@longterm.command(
    "copy", epilog=EXAMPLE + "chat-chat longterm copy --from data/longterm --to postgresql://app@db/chat_chat"
)
@click.option("--from", "source", required=True, help="A folder of JSON files (DATA_DIR/longterm), or postgresql://…")
@click.option("--to", "target", required=True, help="The other of the two.")
@click.option("--tenant", help="This tenant alone.")
@click.option("--anew", is_flag=True, help="Everybody again, also who was copied before and has not changed since.")
@click.option("--small", is_flag=True, help="Made keys, blocked people and opened conversations alone.")
@guarded
def longterm_copy(source: str, target: str, tenant: str | None, anew: bool, small: bool) -> None:
    """Copies everything from one into the other while the bot runs, and compares it by count and hash.

    Called again it copies what changed since, also after it was broken off. To switch: copy; stop the workers; copy
    again, which takes seconds; set LONGTERM_URL; start. Exit status 1 while the two are not the same.
    """
    from gateway import longterm_commands

    settings = read_settings()
    lines, whole = in_loop(
        longterm_commands.copy(settings, source, target, tenant, anew, progress_bar, small_alone=small)
    )
    for line in lines:
        click.echo(line)
    raise SystemExit(0 if whole else 1)
