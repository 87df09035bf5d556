"""The processes, the terminal chat, clean-up and the examination."""

from __future__ import annotations

import click

from gateway import heap
from gateway.cli.common import EXAMPLE, guarded, in_loop, read_settings


@click.command(epilog=EXAMPLE + "chat-chat run --port 8080 --workers 2")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8080, show_default=True, type=click.IntRange(0, 65535), help="Port to listen on.")
@click.option("--workers", default=1, show_default=True, type=click.IntRange(1, 64), help="Worker processes.")
@guarded
def run(host: str, port: int, workers: int) -> None:
    """Everything in one process tree: embedded Redis (if REDIS_URL is unset), HTTP, workers, clean-up."""
    heap.loading()
    from gateway.processes import run_all

    raise SystemExit(run_all(host, port, workers))


@click.command(epilog=EXAMPLE + "REDIS_URL=redis://redis:6379/0 chat-chat serve --host 0.0.0.0")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8080, show_default=True, type=click.IntRange(0, 65535), help="Port to listen on.")
@guarded
def serve(host: str, port: int) -> None:
    """The HTTP side alone; any number may run over one Redis."""
    heap.loading()
    from gateway.processes import serve_alone

    raise SystemExit(serve_alone(host, port))


@click.command(epilog=EXAMPLE + "REDIS_URL=redis://redis:6379/0 chat-chat worker")
@click.option(
    "--concurrency",
    default=64,
    show_default=True,
    type=click.IntRange(1, 1000),
    help="Conversations worked at, at once; those that wait for a model besides.",
)
@click.option("--parent", type=int, hidden=True)
@guarded
def worker(concurrency: int, parent: int | None) -> None:
    """A worker alone; any number may run over one Redis."""
    heap.loading()
    from gateway.processes import work_alone

    raise SystemExit(work_alone(concurrency, parent))


@click.command(epilog=EXAMPLE + "chat-chat chat --tenant demo --user Nok")
@click.option("--tenant", required=True, help="Whose bot to talk to.")
@click.option("--user", default="me", show_default=True, help="Who you are: each name is a person of its own.")
@click.option("--agent", default="default", show_default=True, help="Which of the tenant's agents.")
@guarded
def chat(tenant: str, user: str, agent: str) -> None:
    """Talk to the bot in the terminal. Reads lines from a pipe too; answers go to standard output."""
    from gateway.terminal_chat import talk

    raise SystemExit(talk(tenant, user, agent))


@click.command(epilog=EXAMPLE + "*/10 * * * *  chat-chat cleanup")
@click.option("--tenant", help="This tenant alone.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and change nothing.")
@guarded
def cleanup(tenant: str | None, dry_run: bool) -> None:
    """For cron: ends expired sessions and applies retention."""
    from gateway.processes import clean_up_once

    for line in in_loop(clean_up_once(read_settings(), tenant, dry_run)):
        click.echo(line)


@click.command(epilog=EXAMPLE + "chat-chat doctor")
@guarded
def doctor() -> None:
    """Checks Redis, files, tenant files, LLM key and platform tokens; says what is wrong and how to mend it."""
    from gateway.doctor import examine

    findings = in_loop(examine(read_settings()))
    for finding in findings:
        click.echo(str(finding))
    raise SystemExit(0 if all(finding.well for finding in findings) else 1)
