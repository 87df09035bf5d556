"""`chat-chat encryption`: what lies on disk."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from gateway.cli.common import EXAMPLE, guarded, progress_bar, read_settings


@click.group()
def encryption() -> None:
    """Encryption of what lies in DATA_DIR: on with ENCRYPTION_KEY, a key of its own for each tenant."""


@encryption.command("new-key", epilog=EXAMPLE + "chat-chat encryption new-key > config/secrets/ENCRYPTION_KEY")
@guarded
def new_key() -> None:
    """Prints a key for ENCRYPTION_KEY. Keep a copy where DATA_DIR and its backups are not: without it nothing opens."""
    from config.vault import new_key

    click.echo(new_key())


@encryption.command("apply", epilog=EXAMPLE + "chat-chat encryption apply")
@click.option("--tenant", help="This tenant alone.")
@guarded
def apply(tenant: str | None) -> None:
    """Encrypts, re-encrypts or decrypts what is there already, as the settings say now, while the bot runs.

    After switching it on; after putting a new key before the old one in ENCRYPTION_KEY; after switching it off with
    ENCRYPT_AT_REST=false. First start the bot anew with these settings, then call this. Broken off, it goes on with the
    next call. Exit status 1 where something can't be opened.
    """
    from gateway import encryption as work

    lines, whole = work.apply(read_settings(), tenant, progress_bar)
    for line in lines:
        click.echo(line)
    raise SystemExit(0 if whole else 1)


@encryption.command("show", epilog=EXAMPLE + "chat-chat encryption show data/transcripts/demo/web:ann/2026-11.jsonl")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@guarded
def show(file: Path) -> None:
    """Writes a file below DATA_DIR to standard output as it would stand there without encryption."""
    from gateway import encryption as work

    sys.stdout.buffer.write(work.shown(read_settings(), file))
