"""`chat-chat`: what an operator types. Each command loads what it needs when it runs, so that `--help` is quick."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click
from click.exceptions import NoArgsIsHelpError

from gateway.cli.audit import audit
from gateway.cli.backup import backup, restore
from gateway.cli.broadcasts import broadcasts
from gateway.cli.common import Failed, Misused, in_loop
from gateway.cli.dead_letters import dead_letters
from gateway.cli.encryption import encryption
from gateway.cli.faq import faq
from gateway.cli.keys import api_keys
from gateway.cli.knowledge import knowledge
from gateway.cli.longterm import longterm, migrate
from gateway.cli.mcp import mcp
from gateway.cli.memory import memory
from gateway.cli.running import chat, cleanup, doctor, run, serve, worker
from gateway.cli.simulate import simulate
from gateway.cli.tasks import tasks
from gateway.cli.tenants import tenants
from gateway.cli.understanding import understanding
from gateway.cli.webhooks import webhooks

__all__ = ["Failed", "cli", "in_loop", "main"]


@contextmanager
def _one_line() -> Iterator[None]:
    try:
        yield
    except NoArgsIsHelpError:  # a group by itself is asked what it has
        raise
    except click.UsageError as error:
        raise Misused(error) from None


class _Commands(click.Group):
    """A wrong call is told in one line, click's own of it are several."""

    def make_context(self, *given: Any, **more: Any) -> click.Context:
        with _one_line():
            return super().make_context(*given, **more)

    def invoke(self, ctx: click.Context) -> Any:
        with _one_line():
            return super().invoke(ctx)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="chat-chat")
def cli() -> None:
    """A messaging bot for shops on LINE, Telegram, the web and the terminal, which remembers its customers.

    \b
    Begin with:
      chat-chat run                        start everything
      chat-chat chat --tenant demo         talk to the example shop's bot
    """


for command in (
    *(run, serve, worker, chat, cleanup, doctor, migrate, longterm, tenants, webhooks, memory, knowledge, api_keys),
    *(audit, broadcasts, faq, understanding, dead_letters, tasks, simulate, mcp, backup, restore, encryption),
):
    cli.add_command(command)


def main() -> None:
    try:
        cli()
    except SystemExit as end:
        if (loading := sys.modules.get("processors.loading")) is not None:  # who loaded nothing does not pay for it
            loading.leave(end.code if isinstance(end.code, int) else int(end.code is not None))
        raise
