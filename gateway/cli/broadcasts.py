"""`chat-chat broadcasts`."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from gateway.cli.common import EXAMPLE, Failed, guarded, in_loop, read_settings

_KINDS = ("INQUIRY", "FEEDBACK", "REQUEST", "COMPLAINT", "TRANSACTION", "SUPPORT", "INFORMATION", "GENERIC_EVENT")


def _when(ctx: click.Context, param: click.Parameter, value: str | None) -> datetime | None:
    """A date, a time, or how long ago: 30d, 12h."""
    if value is None:
        return None
    if ago := re.fullmatch(r"(\d{1,5})([dh])", value):
        return datetime.now(UTC) - timedelta(**{"days" if ago[2] == "d" else "hours": int(ago[1])})
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter("write a date such as 2026-11-30, or how long ago: 30d, 12h") from None
    return at if at.tzinfo else at.astimezone()


@click.group()
def broadcasts() -> None:
    """A message to all the people that a filter means: shown before it is sent, sent to each once."""


def _asked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Who is meant, and what is said."""
    for option in reversed(
        (
            click.option("--tenant", required=True),
            click.option(
                "--message", required=True, help="{{user.name}}: the customer's name; - reads standard input."
            ),
            click.option("--message-en", help="For customers who write English."),
            click.option("--button", multiple=True, help="Pressing it sends its words."),
            click.option("--tag", multiple=True, help="Of whom this is remembered: vip, or city=Bangkok."),
            click.option("--event", multiple=True, type=click.Choice(_KINDS), help="Who wrote something of this kind"),
            click.option(
                "--event-since", callback=_when, metavar="WHEN", help="… since: a date, or how long ago: 30d, 12h"
            ),
            click.option("--event-until", callback=_when, metavar="WHEN", help="… and before."),
            click.option("--seen-since", callback=_when, metavar="WHEN", help="Who was last seen since."),
            click.option(
                "--seen-until", callback=_when, metavar="WHEN", help="Who was last seen before: not since then."
            ),
            click.option("--language", type=click.Choice(["th", "en"])),
            click.option("--channel", multiple=True),
            click.option("--platform", multiple=True, type=click.Choice(["line", "telegram", "web"])),
            click.option("--user", multiple=True, help="These alone: for a test, say."),
        )
    ):
        function = option(function)
    return function


def _draft(given: dict[str, Any]) -> Any:
    from pydantic import ValidationError

    from gateway.broadcasts.draft import Draft

    said = sys.stdin.read().strip() if given["message"] == "-" else given["message"]
    to = {
        "tags": given["tag"],
        "events": given["event"],
        "language": given["language"],
        "channels": given["channel"],
        "platforms": given["platform"],
        "users": given["user"],
        **{name: given[name] for name in ("event_since", "event_until", "seen_since", "seen_until")},
    }
    try:
        message = {"th": said, "en": given["message_en"]} if given["message_en"] else said
        return Draft.model_validate({"to": to, "message": message, "buttons": given["button"]})
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise Failed(f"{place}: {first['msg']}" if place else first["msg"]) from error


@broadcasts.command("preview", epilog=EXAMPLE + 'chat-chat broadcasts preview --tenant demo --tag vip --message "…"')
@_asked
@guarded
def broadcasts_preview(tenant: str, **given: Any) -> None:
    """What it costs on LINE, who would get it, and how it reads. Nothing is sent."""
    from gateway.broadcast_commands import previewed

    lines, seen = in_loop(previewed(read_settings(), tenant, _draft(given)))
    for line in lines:
        click.echo(line)
    if seen.refused or seen.confirm:
        raise Failed(seen.refused or seen.confirm)


@broadcasts.command(
    "send",
    epilog=EXAMPLE + 'chat-chat broadcasts send --tenant demo --seen-until 60d --message "คิดถึงคุณ{{user.name}}ค่ะ"',
)
@_asked
@click.option("--id", "name", help="A name of its own: sent again under the same one, it is sent once.")
@click.option("--yes", is_flag=True, help="Ask nothing.")
@click.option("--beyond-quota", is_flag=True, help="Also where LINE's quota won't do for all.")
@guarded
def broadcasts_send(tenant: str, name: str | None, yes: bool, beyond_quota: bool, **given: Any) -> None:
    """Shows the preview, asks, and sends.

    A worker sends it on: at the shop's hours, as fast as the platforms allow.
    """
    from gateway.broadcast_commands import previewed, sent

    settings, draft = read_settings(), _draft(given)
    lines, seen = in_loop(previewed(settings, tenant, draft))
    for line in lines:
        click.echo(line)
    if seen.refused:
        raise Failed(seen.refused)
    if seen.confirm and not beyond_quota:
        raise Failed(f"{seen.confirm} (--beyond-quota)")
    if not yes:
        click.confirm("Send it?", abort=True)
    for line in in_loop(sent(settings, tenant, draft, name, beyond_quota)):
        click.echo(line)


@broadcasts.command("list", epilog=EXAMPLE + "chat-chat broadcasts list --tenant demo")
@click.option("--tenant", required=True)
@guarded
def broadcasts_list(tenant: str) -> None:
    """Broadcasts and follow-ups, the newest first: how far each is, and why it stands still."""
    from gateway.broadcast_commands import listed

    for line in in_loop(listed(read_settings(), tenant)):
        click.echo(line)


@broadcasts.command("show", epilog=EXAMPLE + "chat-chat broadcasts show --tenant demo 20261130-1015-3f2a")
@click.option("--tenant", required=True)
@click.argument("name", metavar="ID")
@guarded
def broadcasts_show(tenant: str, name: str) -> None:
    """One of them: sent to how many, who was left out, and why."""
    from gateway.broadcast_commands import shown

    for line in in_loop(shown(read_settings(), tenant, name)):
        click.echo(line)


def _turning(how: str, told: str) -> None:
    @broadcasts.command(how, help=told, epilog=EXAMPLE + f"chat-chat broadcasts {how} --tenant demo 20261130-1015-3f2a")
    @click.option("--tenant", required=True)
    @click.argument("name", metavar="ID")
    @guarded
    def command(tenant: str, name: str) -> None:
        from gateway.broadcast_commands import turned

        for line in in_loop(turned(read_settings(), tenant, name, how)):
            click.echo(line)


_turning("pause", "Sends no more of it for now; what is on its way arrives.")
_turning("resume", "Goes on with it.")
_turning("cancel", "Sends no more of it for good.")
