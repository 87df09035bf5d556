"""`chat-chat understanding`."""

from __future__ import annotations

import click

from gateway.cli.common import EXAMPLE, Failed, guarded, read_settings


@click.group()
def understanding() -> None:
    """Correct how messages are understood, and learn from it."""


@understanding.command(
    "correct", epilog=EXAMPLE + 'chat-chat understanding correct --tenant demo --type TRANSACTION "ชุดหมีพร้อม"'
)
@click.option("--tenant", required=True)
@click.option("--type", "event_type", required=True, help="INQUIRY, FEEDBACK, REQUEST, COMPLAINT, TRANSACTION, …")
@click.option("--importance", type=click.FloatRange(0, 1), help="How much is lost by forgetting it.")
@click.argument("text")
@guarded
def understanding_correct(tenant: str, event_type: str, importance: float | None, text: str) -> None:
    """From now on these words are of this type for this tenant."""
    from gateway.understanding_commands import correct
    from processors.models import EventType

    if event_type.upper() not in list(EventType):
        raise Failed(f"--type is one of {', '.join(EventType)}")
    click.echo(correct(read_settings(), tenant, text, event_type.upper(), importance))


@understanding.command("list", epilog=EXAMPLE + "chat-chat understanding list --tenant demo")
@click.option("--tenant", required=True)
@guarded
def understanding_list(tenant: str) -> None:
    """What was corrected, the oldest first."""
    from gateway.understanding_commands import listed

    for line in listed(read_settings(), tenant):
        click.echo(line)


@understanding.command("train", epilog=EXAMPLE + "nice chat-chat understanding train --tenant demo")
@click.option("--tenant", required=True)
@guarded
def understanding_train(tenant: str) -> None:
    """Makes the tenant's own classifier from its corrections: half a minute of one core, with the extra `local`."""
    from gateway.understanding_commands import train

    click.echo(train(read_settings(), tenant))
