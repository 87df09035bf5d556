"""`chat-chat dead-letters`."""

from __future__ import annotations

import click

from gateway.cli.common import EXAMPLE, guarded, in_loop, read_settings


@click.group("dead-letters")
def dead_letters() -> None:
    """Messages that could not be handled after every retry."""


@dead_letters.command("list", epilog=EXAMPLE + "chat-chat dead-letters list --tenant demo")
@click.option("--tenant", help="This tenant alone.")
@guarded
def dead_list(tenant: str | None) -> None:
    """The newest first: id, time, conversation, tries and reason. No message text."""
    from gateway.dead_letter_commands import list_letters

    for line in in_loop(list_letters(read_settings(), tenant)):
        click.echo(line)


@dead_letters.command("show", epilog=EXAMPLE + "chat-chat dead-letters show --tenant demo 1790000000000-0")
@click.option("--tenant", required=True)
@click.argument("letter", metavar="ID")
@guarded
def dead_show(tenant: str, letter: str) -> None:
    """One message, whole."""
    from gateway.dead_letter_commands import show_letter

    click.echo(in_loop(show_letter(read_settings(), tenant, letter)))


@dead_letters.command("retry", epilog=EXAMPLE + "chat-chat dead-letters retry --tenant demo --all")
@click.option("--tenant", required=True)
@click.option("--all", "everything", is_flag=True, help="All of the tenant's.")
@click.argument("letters", nargs=-1, metavar="[ID]...")
@guarded
def dead_retry(tenant: str, letters: tuple[str, ...], everything: bool) -> None:
    """Puts messages back into the queue."""
    from gateway.dead_letter_commands import retry_letters

    _some(letters, everything)
    click.echo(in_loop(retry_letters(read_settings(), tenant, letters)))


@dead_letters.command("drop", epilog=EXAMPLE + "chat-chat dead-letters drop --tenant demo 1790000000000-0")
@click.option("--tenant", required=True)
@click.option("--all", "everything", is_flag=True, help="All of the tenant's.")
@click.argument("letters", nargs=-1, metavar="[ID]...")
@guarded
def dead_drop(tenant: str, letters: tuple[str, ...], everything: bool) -> None:
    """Throws messages away."""
    from gateway.dead_letter_commands import drop_letters

    _some(letters, everything)
    click.echo(in_loop(drop_letters(read_settings(), tenant, letters)))


def _some(letters: tuple[str, ...], everything: bool) -> None:
    if bool(letters) == everything:
        raise click.UsageError("name messages by their id, or give --all")
