"""`chat-chat tenants`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gateway.cli.common import EXAMPLE, guarded, in_loop, progress_bar, read_settings, show

if TYPE_CHECKING:
    from config.shown import Lang


@click.group()
def tenants() -> None:
    """Shops: list, check, make, export and import them."""


@tenants.command("list", epilog=EXAMPLE + "chat-chat tenants list")
@guarded
def tenants_list() -> None:
    """Each tenant with its file, state and channels."""
    from config.tenant_commands import list_tenants

    show(list_tenants(read_settings()))


@tenants.command("check", epilog=EXAMPLE + "chat-chat tenants check config/tenants/shop.yaml --lang th")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--lang", type=click.Choice(["th", "en"]), help="Default: what LANG says, else English.")
@guarded
def tenants_check(files: tuple[Path, ...], lang: Lang | None) -> None:
    """Tells every mistake in tenant files, and how to mend it.

    Of all files, or those named, by path or by the shop's id: file, line, field, what is wrong, the place with a caret
    below it, the remedy. Exit status 1 if there is any."""
    from config.shown import language_of
    from config.tenant_commands import check_tenants

    show(check_tenants(read_settings(), files, lang or language_of()), findings=True)


@tenants.command(
    "new", epilog=EXAMPLE + "chat-chat tenants new my-shop --name 'Baan Suan' --hours 09:00-18:00 --closed sun"
)
@click.argument("tenant_id", metavar="[ID]", required=False)
@click.option("--name", help="The shop's name, shown to people.")
@click.option("--phone", help="For the answer to who asks for it.")
@click.option("--hours", help="Open from and to, such as 09:00-18:00.")
@click.option("--closed", multiple=True, metavar="DAY", help="A day that is closed, such as sun; may be repeated.")
@click.option("--language", type=click.Choice(["th", "en", "auto"]), help="The bot's; auto: the customer's.")
@click.option("--lang", type=click.Choice(["th", "en"]), help="Of what is asked here; default: what LANG says.")
@click.option("--yes", is_flag=True, help="Ask nothing.")
@guarded
def tenants_new(tenant_id: str | None, yes: bool, lang: Lang | None, **given: Any) -> None:
    """Writes a commented tenant file that works at once.

    On a terminal it asks a few questions, unless answers are given as options. It never writes over a file."""
    from config.shown import language_of
    from config.tenant_commands import new_tenant
    from gateway.cli.asking import asked

    lang, settings = lang or language_of(), read_settings()
    answers = asked(settings, tenant_id, given, lang, sys.stdin.isatty() and not yes)
    show(new_tenant(settings, answers, lang))


@tenants.command("schema", epilog=EXAMPLE + "chat-chat tenants schema > config/tenant.schema.json")
@guarded
def tenants_schema() -> None:
    """Prints JSON Schema, for completion in editors.

    `new` puts it into config/tenant.schema.json, which the first line of the files that it writes names."""
    from config.tenant_commands import tenant_schema

    show(tenant_schema())


@tenants.command("export", epilog=EXAMPLE + "chat-chat tenants export my-shop --to my-shop.tar.gz")
@click.argument("tenant_id", metavar="ID")
@click.option("--to", type=click.Path(path_type=Path, dir_okay=False), help="Default: the id and the time, .tar.gz.")
@guarded
def tenants_export(tenant_id: str, to: Path | None) -> None:
    """Writes everything of a shop into one file, to be moved.

    Its own file, templates, knowledge, memories, transcripts and media; no secrets. The bot may go on meanwhile."""
    from gateway.moving.commands import export

    for line in in_loop(export(read_settings(), tenant_id, to, progress_bar)):
        click.echo(line)


@tenants.command("import", epilog=EXAMPLE + "chat-chat tenants import my-shop.tar.gz")
@click.argument("archive", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--as", "tenant_as", metavar="ID", help="Under another id than it had.")
@click.option("--add", is_flag=True, help="Into a tenant that is here: what is missing is added, nothing overwritten.")
@guarded
def tenants_import(archive: Path, tenant_as: str | None, add: bool) -> None:
    """Takes in what `export` wrote; nothing may be missing.

    Each file is checked by its SHA-256 before anything is changed; what was broken off goes on with the next call."""
    from gateway.moving.commands import arrive

    lines, whole = in_loop(arrive(read_settings(), archive, tenant_as, add, progress_bar))
    for line in lines:
        click.echo(line)
    raise SystemExit(0 if whole else 1)
