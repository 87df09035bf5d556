"""`chat-chat tenants`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gateway.cli.common import EXAMPLE, guarded, read_settings, show

if TYPE_CHECKING:
    from config.shown import Lang


@click.group()
def tenants() -> None:
    """List, check and create tenants."""


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
    """Checks tenant files (all, or those named): file, line, field, what is wrong and how to mend it."""
    from config.shown import language_of
    from config.tenant_commands import check_tenants

    show(check_tenants(read_settings(), files, lang or language_of()), findings=True)


@tenants.command("new", epilog=EXAMPLE + "chat-chat tenants new my-shop")
@click.argument("tenant_id", metavar="ID")
@guarded
def tenants_new(tenant_id: str) -> None:
    """Writes a commented tenant file that works at once."""
    from config.tenant_commands import new_tenant

    show(new_tenant(read_settings(), tenant_id))


@tenants.command("schema", epilog=EXAMPLE + "chat-chat tenants schema > tenant.schema.json")
@guarded
def tenants_schema() -> None:
    """Prints JSON Schema, for completion in editors."""
    from config.tenant_commands import tenant_schema

    show(tenant_schema())
