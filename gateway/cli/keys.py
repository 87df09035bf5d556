"""`chat-chat keys`."""

from __future__ import annotations

from typing import Literal

import click

from gateway.cli.common import EXAMPLE, guarded, read_settings


@click.group("keys")
def api_keys() -> None:
    """A shop's own keys, for its page, the API and programs."""


@api_keys.command("list", epilog=EXAMPLE + "chat-chat keys list --tenant demo")
@click.option("--tenant", required=True)
@guarded
def keys_list(tenant: str) -> None:
    """Those that were made here: id, first characters, day, scope, end, last use (to ten minutes), name."""
    from gateway.key_commands import listed

    for line in listed(read_settings(), tenant):
        click.echo(line)


@api_keys.command("new", epilog=EXAMPLE + "chat-chat keys new --tenant demo --name 'the shop counter'")
@click.option("--tenant", required=True)
@click.option("--name", default="", help="What it is for.")
@click.option(
    "--scope",
    type=click.Choice(["read", "write", "admin"]),
    default="admin",
    show_default=True,
    help="read: looks; write: changes things and talks to the bot; admin: also exports, clears, and the admin page.",
)
@click.option("--days", type=click.IntRange(1, 3660), help="Days until it opens nothing any more; left out: no end.")
@guarded
def keys_new(tenant: str, name: str, scope: Literal["read", "write", "admin"], days: int | None) -> None:
    """Makes one and shows it, once. It counts at once, also for what is running."""
    from gateway.key_commands import made

    click.echo(made(read_settings(), tenant, name, scope, days))


@api_keys.command("revoke", epilog=EXAMPLE + "chat-chat keys revoke --tenant demo k_1f2e3d4c5b6a")
@click.option("--tenant", required=True)
@click.argument("key_id", metavar="ID")
@guarded
def keys_revoke(tenant: str, key_id: str) -> None:
    """From now on it opens nothing, and whoever signed in with it is signed out."""
    from gateway.key_commands import revoked

    click.echo(revoked(read_settings(), tenant, key_id))
