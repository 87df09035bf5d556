"""`chat-chat faq`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from config.extras import install
from gateway.cli.common import EXAMPLE, Failed, guarded, read_settings

T = TypeVar("T")


@click.group()
def faq() -> None:
    """A shop's own answers, as a table for Excel and others."""


@faq.command("export", epilog=EXAMPLE + "chat-chat faq export --tenant demo answers.csv")
@click.option("--tenant", required=True)
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@guarded
def faq_export(tenant: str, file: Path | None) -> None:
    """Writes them to FILE (.csv, or .xlsx with the extra `xlsx`), else as CSV to standard output."""
    from config.faq_commands import exported

    kind = "xlsx" if file is not None and file.suffix.lower() == ".xlsx" else "csv"
    raw = _told(lambda: exported(read_settings(), tenant, kind))
    if file is None:
        sys.stdout.buffer.write(raw)
        return
    file.write_bytes(raw)
    click.echo(f"{file} is written")


@faq.command("import", epilog=EXAMPLE + "chat-chat faq import --tenant demo answers.csv")
@click.option("--tenant", required=True)
@click.option("--replace", is_flag=True, help="Answers that are not in FILE are removed.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@guarded
def faq_import(tenant: str, file: Path, replace: bool, dry_run: bool) -> None:
    """Takes in FILE (.csv or .xlsx): its columns are questions, answer, answer_th, answer_en, buttons,
    media. Several questions, buttons or media stand in one cell, a line each.

    An answer whose first question is known is replaced, another is added. The rest of the tenant's file stays as it is,
    and counts within seconds.
    """
    from config.faq_commands import imported

    for line in _told(lambda: imported(read_settings(), tenant, file, replace=replace, dry_run=dry_run)):
        click.echo(line)


def _told(work: Callable[[], T]) -> T:
    from config.faq_commands import CannotDo
    from config.faq_table import TableError

    try:
        return work()
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "openpyxl":
            raise
        raise Failed(f"this needs the extra xlsx: {install('xlsx')}") from error
    except TableError as error:
        raise Failed("; ".join(error.wrong[:20])) from error
    except CannotDo as error:
        raise Failed(str(error)) from error
