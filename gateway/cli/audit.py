"""`chat-chat audit`."""

from __future__ import annotations

import itertools
from datetime import datetime

import click

from gateway.cli.common import EXAMPLE, doubt, guarded, read_settings


@click.command(epilog=EXAMPLE + "chat-chat audit --tenant demo --user line:U4af --since 2026-11-01")
@click.option("--tenant", required=True)
@click.option("--user", help="What was done with this person's data.")
@click.option("--since", type=click.DateTime(), help="UTC.")
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1, 100_000))
@guarded
def audit(tenant: str, user: str | None, since: datetime | None, limit: int) -> None:
    """Who read, changed, exported or deleted whose data, the newest first. People stand in it under hashes."""
    from datetime import UTC

    from gateway.audit import AuditLog

    settings, found = read_settings(), None
    log = AuditLog(settings.data_dir)
    for found in itertools.islice(log.of(tenant, user, since.replace(tzinfo=UTC) if since else None), limit):
        click.echo(f"{found.at}  {found.who}  {found.did}  {found.whose or '-'}  {found.by}  {found.status}")
    if found is None:
        click.echo(f"nothing is recorded{doubt(settings, tenant)}")
