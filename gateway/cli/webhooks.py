"""`chat-chat webhooks`."""

from __future__ import annotations

import click

from gateway.cli.common import EXAMPLE, guarded, in_loop, read_settings, report, tenants_of


@click.group()
def webhooks() -> None:
    """Register and inspect the webhook URLs at LINE and Telegram."""


@webhooks.command("set", epilog=EXAMPLE + "PUBLIC_URL=https://bot.example.com chat-chat webhooks set")
@click.option("--tenant", help="This tenant alone.")
@guarded
def webhooks_set(tenant: str | None) -> None:
    """Registers PUBLIC_URL at each channel's platform."""
    from gateway.webhook_setup import set_webhooks

    report(in_loop(set_webhooks(read_settings(), tenants_of(tenant))))


@webhooks.command("info", epilog=EXAMPLE + "chat-chat webhooks info --tenant demo")
@click.option("--tenant", help="This tenant alone.")
@guarded
def webhooks_info(tenant: str | None) -> None:
    """What each platform says of its webhook."""
    from gateway.webhook_setup import webhook_info

    report(in_loop(webhook_info(read_settings(), tenants_of(tenant))))
