"""`chat-chat memory`."""

from __future__ import annotations

from pathlib import Path

import click

from gateway.cli.common import EXAMPLE, guarded, in_loop, progress_bar, read_settings


@click.group()
def memory() -> None:
    """What is known of a person: shown, searched, taken along, forgotten."""


@memory.command("show", epilog=EXAMPLE + "chat-chat memory show --tenant demo --user line:U4af")
@click.option("--tenant", required=True)
@click.option("--user", required=True, help="The canonical id: line:U4af…, telegram:12345.")
@guarded
def memory_show(tenant: str, user: str) -> None:
    """Who it is, what holds, what the last sessions were about."""
    from gateway import memory_commands

    for line in in_loop(memory_commands.show(read_settings(), tenant, user)):
        click.echo(line)


@memory.command("search", epilog=EXAMPLE + "chat-chat memory search --tenant demo --user line:U4af coffee")
@click.option("--tenant", required=True)
@click.option("--user", required=True)
@click.option("--limit", default=10, show_default=True, type=click.IntRange(1, 200))
@click.argument("query")
@guarded
def memory_search(tenant: str, user: str, limit: int, query: str) -> None:
    """What is known that has these words, the best first."""
    from gateway import memory_commands

    for line in in_loop(memory_commands.search(read_settings(), tenant, user, query, limit)):
        click.echo(line)


@memory.command("export", epilog=EXAMPLE + "chat-chat memory export --tenant demo --all-users > demo.jsonl")
@click.option("--tenant", required=True)
@click.option("--user", help="This person alone.")
@click.option("--all-users", is_flag=True, help="Everybody.")
@guarded
def memory_export(tenant: str, user: str | None, all_users: bool) -> None:
    """Everything that is kept, a line of JSON a person."""
    from gateway import memory_commands

    if all_users == (user is not None):
        raise click.UsageError("give --user or --all-users")
    for line in in_loop(memory_commands.export(read_settings(), tenant, user)):
        click.echo(line)


@memory.command("import", epilog=EXAMPLE + "chat-chat memory import --tenant demo demo.jsonl")
@click.option("--tenant", required=True)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@guarded
def memory_import(tenant: str, files: tuple[Path, ...]) -> None:
    """Takes in what `export` wrote, beside what is known already."""
    from gateway import memory_commands

    for line in in_loop(memory_commands.import_(read_settings(), tenant, files)):
        click.echo(line)


@memory.command("link", epilog=EXAMPLE + "chat-chat memory link --tenant demo --user telegram:12345 --to line:U4af")
@click.option("--tenant", required=True)
@click.option("--user", required=True, help="The id that leads to the other from now on.")
@click.option("--to", required=True, help="The id that stands for both.")
@guarded
def memory_link(tenant: str, user: str, to: str) -> None:
    """Two ids are one person: everything moves, their main conversation is one."""
    from gateway import memory_commands

    for line in in_loop(memory_commands.link(read_settings(), tenant, user, to)):
        click.echo(line)


@memory.command("unlink", epilog=EXAMPLE + "chat-chat memory unlink --tenant demo --user telegram:12345")
@click.option("--tenant", required=True)
@click.option("--user", required=True, help="The id that was linked to another.")
@guarded
def memory_unlink(tenant: str, user: str) -> None:
    """Parts an id again, and gives back what came from it."""
    from gateway import memory_commands

    for line in in_loop(memory_commands.unlink(read_settings(), tenant, user)):
        click.echo(line)


@memory.command("forget", epilog=EXAMPLE + "chat-chat memory forget --tenant demo --user line:U4af --yes")
@click.option("--tenant", required=True)
@click.option("--user", required=True)
@click.option("--yes", is_flag=True, help="Don't ask.")
@guarded
def memory_forget(tenant: str, user: str, yes: bool) -> None:
    """Removes a person from everything that is kept, and says what was removed."""
    from gateway import memory_commands

    if not yes:
        click.confirm(f"Remove everything that is known of {user}?", abort=True)
    for line in in_loop(memory_commands.forget(read_settings(), tenant, user)):
        click.echo(line)


@memory.command("reindex", epilog=EXAMPLE + "chat-chat memory reindex --tenant demo")
@click.option("--tenant", help="This tenant alone.")
@guarded
def memory_reindex(tenant: str | None) -> None:
    """Makes the lists over a tenant anew from the files, and the vectors that are missing."""
    from gateway import memory_commands

    for line in in_loop(memory_commands.reindex(read_settings(), tenant, progress_bar)):
        click.echo(line)
