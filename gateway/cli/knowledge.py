"""`chat-chat knowledge`."""

from __future__ import annotations

from collections.abc import Sequence

import click

from gateway.cli.common import EXAMPLE, guarded, in_loop, read_settings


@click.group()
def knowledge() -> None:
    """The shop's own files and answers: what is found in them, and what nothing answered."""


@knowledge.command("list", epilog=EXAMPLE + "chat-chat knowledge list --tenant demo")
@click.option("--tenant", "-t", required=True)
@guarded
def knowledge_list(tenant: str) -> None:
    """Each file of config/knowledge/TENANT with its passages, or what is wrong with it (exit status 1)."""
    from gateway import knowledge_commands

    _show(*in_loop(knowledge_commands.listed(read_settings(), tenant)))


@knowledge.command("reindex", epilog=EXAMPLE + "chat-chat knowledge reindex --tenant demo")
@click.option("--tenant", "-t", required=True)
@guarded
def knowledge_reindex(tenant: str) -> None:
    """Reads every file anew. Not needed: changes are seen by themselves."""
    from gateway import knowledge_commands

    _show(*in_loop(knowledge_commands.reindex(read_settings(), tenant)))


@knowledge.command("ask", epilog=EXAMPLE + 'chat-chat knowledge ask --tenant demo "do you deliver?"')
@click.option("--tenant", "-t", required=True)
@click.argument("question")
@guarded
def knowledge_ask(tenant: str, question: str) -> None:
    """What would be found for a customer's question, the best first, and whether it is sure enough to be sent."""
    from gateway import knowledge_commands

    for line in in_loop(knowledge_commands.ask(read_settings(), tenant, question)):
        click.echo(line)


@knowledge.command("unanswered", epilog=EXAMPLE + "chat-chat knowledge unanswered --tenant demo --drop u_1f2e3d4c5b6a")
@click.option("--tenant", "-t", required=True)
@click.option("--drop", multiple=True, metavar="ID", help="It has an answer now: off the list. May be given often.")
@guarded
def knowledge_unanswered(tenant: str, drop: tuple[str, ...]) -> None:
    """What customers asked and nothing answered: id, how many people, when last, the question."""
    from gateway import knowledge_commands

    if drop:
        click.echo(knowledge_commands.answered(read_settings(), tenant, drop))
        return
    for line in knowledge_commands.unanswered(read_settings(), tenant):
        click.echo(line)


def _show(lines: Sequence[str], well: bool) -> None:
    for line in lines:
        click.echo(line)
    if not well:
        raise SystemExit(1)
