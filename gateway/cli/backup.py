"""`chat-chat backup`, `chat-chat restore`."""

from __future__ import annotations

from pathlib import Path

import click

from gateway.cli.common import EXAMPLE, guarded, in_loop, progress_bar, read_settings


@click.command(epilog=EXAMPLE + "chat-chat backup --to /backups/$(date +%F-%H%M)")
@click.option("--to", required=True, type=click.Path(path_type=Path, file_okay=False), help="A folder, new or empty.")
@guarded
def backup(to: Path) -> None:
    """Redis and everything that is remembered, into a folder, while the bot runs.

    Tenants' files and secrets (CONFIG_DIR) are not in it.
    """
    from gateway.backup import commands

    for line in in_loop(commands.backup(read_settings(), to, progress_bar)):
        click.echo(line)


@click.command(epilog=EXAMPLE + "chat-chat restore /backups/2026-11-28-0300")
@click.argument("source", metavar="FROM", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option("--over", is_flag=True, help="In the place of everything that is here; that is removed first.")
@guarded
def restore(source: Path, over: bool) -> None:
    """Puts a backup back, checked by its sums, and compares what is there then.

    Stop serve and worker first. What waited to be answered waits again; who was forgotten since the backup is
    forgotten again, as long as DATA_DIR still has its list of them. Exit status 1 where anything is not as it was.
    """
    from gateway.backup import commands

    lines, whole = in_loop(commands.restore(read_settings(), source, over, progress_bar))
    for line in lines:
        click.echo(line)
    raise SystemExit(0 if whole else 1)
