"""`chat-chat tasks`."""

from __future__ import annotations

import click

from gateway.cli.common import EXAMPLE, guarded, in_loop, read_settings


@click.group()
def tasks() -> None:
    """Customers who wait for an answer of the shop's people: it was closed, or nobody knew what they asked."""


@tasks.command("list", epilog=EXAMPLE + "chat-chat tasks list --tenant demo")
@click.option("--tenant", required=True)
@guarded
def tasks_list(tenant: str) -> None:
    """The oldest first: id, since when, channel, who, and what they wrote."""
    from gateway.task_commands import listed

    for line in in_loop(listed(read_settings(), tenant)):
        click.echo(line)


@tasks.command("done", epilog=EXAMPLE + "chat-chat tasks done --tenant demo 1f2e3d4c5b")
@click.option("--tenant", required=True)
@click.argument("task_id", metavar="ID")
@guarded
def tasks_done(tenant: str, task_id: str) -> None:
    """Takes one off the list. An answer of staff's in the chat does that by itself."""
    from gateway.task_commands import done

    click.echo(in_loop(done(read_settings(), tenant, task_id)))
