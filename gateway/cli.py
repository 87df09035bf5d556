"""`chat-chat`: what an operator types. Each command loads what it needs when it runs, so that `--help` is quick."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import click

P = ParamSpec("P")
R = TypeVar("R")

EXAMPLE = "\b\nExample:\n  "


class Failed(click.ClickException):
    """The job could not be done: one line to standard error, exit status 1."""

    def show(self, file: Any = None) -> None:
        click.echo(f"chat-chat: {self.message}", err=True)


def guarded(function: Callable[P, R]) -> Callable[P, R]:
    """What is known to go wrong becomes one line; a traceback is left for our own mistakes."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except KeyboardInterrupt:
            raise SystemExit(130) from None
        except BrokenPipeError:
            sys.stderr.close()
            raise SystemExit(1) from None
        except _redis_errors() as error:
            raise Failed(
                f"Redis can't be used ({_first_line(error)}): check REDIS_URL, see `chat-chat doctor`"
            ) from error
        except _known_errors() as error:
            raise Failed(_first_line(error)) from error
        except OSError as error:  # a folder that can't be read or written, a full disk
            raise Failed(f"{error.filename or 'the system'}: {error.strerror or _first_line(error)}") from error

    return run


def _known_errors() -> tuple[type[Exception], ...]:
    """Looked up when something went wrong, and not before: `--help` needs none of it."""
    from config.settings import SettingsError
    from gateway.errors import GatewayFault
    from memory.errors import MemoryFault
    from memory.keys import InvalidId

    return SettingsError, GatewayFault, MemoryFault, InvalidId


def _redis_errors() -> type[Exception]:
    from redis.exceptions import RedisError

    return RedisError


def _first_line(error: Exception) -> str:
    return " ".join(str(error).split())


def in_loop(work: Coroutine[Any, Any, R]) -> R:
    """Runs a coroutine, on uvloop where there is one."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(work)
    return uvloop.run(work)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="chat-chat")
def cli() -> None:
    """A messaging bot for shops on LINE, Telegram and the terminal, which remembers its customers.

    \b
    Begin with:
      chat-chat run                        start everything
      chat-chat chat --tenant demo         talk to the example shop's bot
    """


@cli.command(epilog=EXAMPLE + "chat-chat run --port 8080 --workers 2")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8080, show_default=True, type=click.IntRange(0, 65535), help="Port to listen on.")
@click.option("--workers", default=1, show_default=True, type=click.IntRange(1, 64), help="Worker processes.")
@guarded
def run(host: str, port: int, workers: int) -> None:
    """Everything in one process tree: embedded Redis (if REDIS_URL is unset), HTTP, workers, clean-up."""
    from gateway.processes import run_all

    raise SystemExit(run_all(host, port, workers))


@cli.command(epilog=EXAMPLE + "REDIS_URL=redis://redis:6379/0 chat-chat serve --host 0.0.0.0")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8080, show_default=True, type=click.IntRange(0, 65535), help="Port to listen on.")
@guarded
def serve(host: str, port: int) -> None:
    """The HTTP side alone; any number may run over one Redis."""
    from gateway.processes import serve_alone

    raise SystemExit(serve_alone(host, port))


@cli.command(epilog=EXAMPLE + "REDIS_URL=redis://redis:6379/0 chat-chat worker")
@click.option(
    "--concurrency", default=64, show_default=True, type=click.IntRange(1, 1000), help="Conversations at once."
)
@click.option("--parent", type=int, hidden=True)
@guarded
def worker(concurrency: int, parent: int | None) -> None:
    """A worker alone; any number may run over one Redis."""
    from gateway.processes import work_alone

    raise SystemExit(work_alone(concurrency, parent))


@cli.command(epilog=EXAMPLE + "chat-chat chat --tenant demo --user Nok")
@click.option("--tenant", required=True, help="Whose bot to talk to.")
@click.option("--user", default="me", show_default=True, help="Who you are: each name is a person of its own.")
@click.option("--agent", default="default", show_default=True, help="Which of the tenant's agents.")
@guarded
def chat(tenant: str, user: str, agent: str) -> None:
    """Talk to the bot in the terminal. Reads lines from a pipe too; answers go to standard output."""
    from gateway.terminal_chat import talk

    raise SystemExit(talk(tenant, user, agent))


@cli.command(epilog=EXAMPLE + "*/10 * * * *  chat-chat cleanup")
@click.option("--tenant", help="This tenant alone.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and change nothing.")
@guarded
def cleanup(tenant: str | None, dry_run: bool) -> None:
    """For cron: ends expired sessions and applies retention."""
    from gateway.processes import clean_up_once

    for line in in_loop(clean_up_once(_settings(), tenant, dry_run)):
        click.echo(line)


@cli.group()
def tenants() -> None:
    """List, check and create tenants."""


@tenants.command("list", epilog=EXAMPLE + "chat-chat tenants list")
@guarded
def tenants_list() -> None:
    """Each tenant with its file, state and channels."""
    from config.tenant_commands import list_tenants

    _show(list_tenants(_settings()))


@tenants.command("check", epilog=EXAMPLE + "chat-chat tenants check config/tenants/shop.yaml")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@guarded
def tenants_check(files: tuple[Path, ...]) -> None:
    """Checks tenant files (all, or those named): file, line, field, what is wrong and how to mend it."""
    from config.tenant_commands import check_tenants

    _show(check_tenants(_settings(), files), findings=True)


@tenants.command("new", epilog=EXAMPLE + "chat-chat tenants new my-shop")
@click.argument("tenant_id", metavar="ID")
@guarded
def tenants_new(tenant_id: str) -> None:
    """Writes a commented tenant file that works at once."""
    from config.tenant_commands import new_tenant

    _show(new_tenant(_settings(), tenant_id))


@tenants.command("schema", epilog=EXAMPLE + "chat-chat tenants schema > tenant.schema.json")
@guarded
def tenants_schema() -> None:
    """Prints JSON Schema, for completion in editors."""
    from config.tenant_commands import tenant_schema

    _show(tenant_schema())


@cli.group("keys")
def api_keys() -> None:
    """A shop's own keys, for its page, the API and programs."""


@api_keys.command("list", epilog=EXAMPLE + "chat-chat keys list --tenant demo")
@click.option("--tenant", required=True)
@guarded
def keys_list(tenant: str) -> None:
    """Those that were made here: id, first characters, day, name."""
    from gateway.key_commands import listed

    for line in listed(_settings(), tenant):
        click.echo(line)


@api_keys.command("new", epilog=EXAMPLE + "chat-chat keys new --tenant demo --name 'the shop counter'")
@click.option("--tenant", required=True)
@click.option("--name", default="", help="What it is for.")
@guarded
def keys_new(tenant: str, name: str) -> None:
    """Makes one and shows it, once. It counts at once, also for what is running."""
    from gateway.key_commands import made

    click.echo(made(_settings(), tenant, name))


@api_keys.command("revoke", epilog=EXAMPLE + "chat-chat keys revoke --tenant demo k_1f2e3d4c5b6a")
@click.option("--tenant", required=True)
@click.argument("key_id", metavar="ID")
@guarded
def keys_revoke(tenant: str, key_id: str) -> None:
    """From now on it opens nothing, and whoever signed in with it is signed out."""
    from gateway.key_commands import revoked

    click.echo(revoked(_settings(), tenant, key_id))


@cli.group()
def webhooks() -> None:
    """Register and inspect the webhook URLs at LINE and Telegram."""


@webhooks.command("set", epilog=EXAMPLE + "PUBLIC_URL=https://bot.example.com chat-chat webhooks set")
@click.option("--tenant", help="This tenant alone.")
@guarded
def webhooks_set(tenant: str | None) -> None:
    """Registers PUBLIC_URL at each channel's platform."""
    from gateway.webhook_setup import set_webhooks

    _report(in_loop(set_webhooks(_settings(), _tenants_of(tenant))))


@webhooks.command("info", epilog=EXAMPLE + "chat-chat webhooks info --tenant demo")
@click.option("--tenant", help="This tenant alone.")
@guarded
def webhooks_info(tenant: str | None) -> None:
    """What each platform says of its webhook."""
    from gateway.webhook_setup import webhook_info

    _report(in_loop(webhook_info(_settings(), _tenants_of(tenant))))


@cli.group()
def memory() -> None:
    """What is known of a person: shown, searched, taken along, forgotten."""


@memory.command("show", epilog=EXAMPLE + "chat-chat memory show --tenant demo --user line:U4af")
@click.option("--tenant", required=True)
@click.option("--user", required=True, help="The canonical id: line:U4af…, telegram:12345.")
@guarded
def memory_show(tenant: str, user: str) -> None:
    """Who it is, what holds, what the last sessions were about."""
    from gateway import memory_commands

    for line in in_loop(memory_commands.show(_settings(), tenant, user)):
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

    for line in in_loop(memory_commands.search(_settings(), tenant, user, query, limit)):
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
    for line in in_loop(memory_commands.export(_settings(), tenant, user)):
        click.echo(line)


@memory.command("import", epilog=EXAMPLE + "chat-chat memory import --tenant demo demo.jsonl")
@click.option("--tenant", required=True)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@guarded
def memory_import(tenant: str, files: tuple[Path, ...]) -> None:
    """Takes in what `export` wrote, beside what is known already."""
    from gateway import memory_commands

    for line in in_loop(memory_commands.import_(_settings(), tenant, files)):
        click.echo(line)


@memory.command("link", epilog=EXAMPLE + "chat-chat memory link --tenant demo --user telegram:12345 --to line:U4af")
@click.option("--tenant", required=True)
@click.option("--user", required=True, help="The id that leads to the other from now on.")
@click.option("--to", required=True, help="The id that stands for both.")
@guarded
def memory_link(tenant: str, user: str, to: str) -> None:
    """Two ids are one person: everything moves, their main conversation is one."""
    from gateway import memory_commands

    for line in in_loop(memory_commands.link(_settings(), tenant, user, to)):
        click.echo(line)


@memory.command("unlink", epilog=EXAMPLE + "chat-chat memory unlink --tenant demo --user telegram:12345")
@click.option("--tenant", required=True)
@click.option("--user", required=True, help="The id that was linked to another.")
@guarded
def memory_unlink(tenant: str, user: str) -> None:
    """Parts an id again, and gives back what came from it."""
    from gateway import memory_commands

    for line in in_loop(memory_commands.unlink(_settings(), tenant, user)):
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
    for line in in_loop(memory_commands.forget(_settings(), tenant, user)):
        click.echo(line)


@memory.command("reindex", epilog=EXAMPLE + "chat-chat memory reindex --tenant demo")
@click.option("--tenant", help="This tenant alone.")
@guarded
def memory_reindex(tenant: str | None) -> None:
    """Makes the lists over a tenant anew from the files."""
    from gateway import memory_commands

    for line in in_loop(memory_commands.reindex(_settings(), tenant, _bar)):
        click.echo(line)


@cli.group()
def understanding() -> None:
    """Correct how messages are understood, and learn from it."""


@understanding.command(
    "correct", epilog=EXAMPLE + 'chat-chat understanding correct --tenant demo --type TRANSACTION "ชุดหมีพร้อม"'
)
@click.option("--tenant", required=True)
@click.option("--type", "event_type", required=True, help="INQUIRY, FEEDBACK, REQUEST, COMPLAINT, TRANSACTION, …")
@click.option("--importance", type=click.FloatRange(0, 1), help="How much is lost by forgetting it.")
@click.argument("text")
@guarded
def understanding_correct(tenant: str, event_type: str, importance: float | None, text: str) -> None:
    """From now on these words are of this type for this tenant."""
    from gateway.understanding_commands import correct
    from processors.models import EventType

    if event_type.upper() not in list(EventType):
        raise Failed(f"--type is one of {', '.join(EventType)}")
    click.echo(correct(_settings(), tenant, text, event_type.upper(), importance))


@understanding.command("list", epilog=EXAMPLE + "chat-chat understanding list --tenant demo")
@click.option("--tenant", required=True)
@guarded
def understanding_list(tenant: str) -> None:
    """What was corrected, the oldest first."""
    from gateway.understanding_commands import listed

    for line in listed(_settings(), tenant):
        click.echo(line)


@understanding.command("train", epilog=EXAMPLE + "nice chat-chat understanding train --tenant demo")
@click.option("--tenant", required=True)
@guarded
def understanding_train(tenant: str) -> None:
    """Makes the tenant's own classifier from its corrections: half a minute of one core, with the extra `local`."""
    from gateway.understanding_commands import train

    click.echo(train(_settings(), tenant))


@cli.command(epilog=EXAMPLE + "CHAT_CHAT_API_KEY=… chat-chat mcp --tenant demo")
@click.option("--tenant", help="With the admin key, on stdio: whose memory. Over HTTP the header X-Tenant says it.")
@click.option("--key", envvar="CHAT_CHAT_API_KEY", help="On stdio: the API key; better given as CHAT_CHAT_API_KEY.")
@click.option("--http", is_flag=True, help="Over HTTP at /mcp, each request with its key, and not on stdio.")
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", default=8090, show_default=True, type=click.IntRange(1, 65535))
@guarded
def mcp(tenant: str | None, key: str | None, http: bool, host: str, port: int) -> None:
    """The memory's tools (recall, remember, identify_user) for other programs, over MCP."""
    try:
        from gateway import mcp_server
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types"):
            raise
        raise Failed("this needs the extra mcp: pip install 'chat-chat[mcp]'") from error
    if http:
        in_loop(mcp_server.over_http(_settings(), host, port))
        return
    if not key:
        raise click.UsageError("give the API key as CHAT_CHAT_API_KEY (see `chat-chat mcp --help`)")
    try:
        in_loop(mcp_server.over_stdio(_settings(), key, tenant))
    except ValueError as error:
        raise Failed(str(error).replace("?tenant=…", "--tenant …")) from error


@cli.group("dead-letters")
def dead_letters() -> None:
    """Messages that could not be handled after every retry."""


@dead_letters.command("list", epilog=EXAMPLE + "chat-chat dead-letters list --tenant demo")
@click.option("--tenant", help="This tenant alone.")
@guarded
def dead_list(tenant: str | None) -> None:
    """The newest first: id, time, conversation, tries and reason. No message text."""
    from gateway.dead_letter_commands import list_letters

    for line in in_loop(list_letters(_settings(), tenant)):
        click.echo(line)


@dead_letters.command("show", epilog=EXAMPLE + "chat-chat dead-letters show --tenant demo 1790000000000-0")
@click.option("--tenant", required=True)
@click.argument("letter", metavar="ID")
@guarded
def dead_show(tenant: str, letter: str) -> None:
    """One message, whole."""
    from gateway.dead_letter_commands import show_letter

    click.echo(in_loop(show_letter(_settings(), tenant, letter)))


@dead_letters.command("retry", epilog=EXAMPLE + "chat-chat dead-letters retry --tenant demo --all")
@click.option("--tenant", required=True)
@click.option("--all", "everything", is_flag=True, help="All of the tenant's.")
@click.argument("letters", nargs=-1, metavar="[ID]...")
@guarded
def dead_retry(tenant: str, letters: tuple[str, ...], everything: bool) -> None:
    """Puts messages back into the queue."""
    from gateway.dead_letter_commands import retry_letters

    _some(letters, everything)
    click.echo(in_loop(retry_letters(_settings(), tenant, letters)))


@dead_letters.command("drop", epilog=EXAMPLE + "chat-chat dead-letters drop --tenant demo 1790000000000-0")
@click.option("--tenant", required=True)
@click.option("--all", "everything", is_flag=True, help="All of the tenant's.")
@click.argument("letters", nargs=-1, metavar="[ID]...")
@guarded
def dead_drop(tenant: str, letters: tuple[str, ...], everything: bool) -> None:
    """Throws messages away."""
    from gateway.dead_letter_commands import drop_letters

    _some(letters, everything)
    click.echo(in_loop(drop_letters(_settings(), tenant, letters)))


@cli.command(epilog=EXAMPLE + "chat-chat doctor")
@guarded
def doctor() -> None:
    """Checks Redis, files, tenant files, LLM key and platform tokens; says what is wrong and how to mend it."""
    from gateway.doctor import examine

    findings = in_loop(examine(_settings()))
    for finding in findings:
        click.echo(str(finding))
    raise SystemExit(0 if all(finding.well for finding in findings) else 1)


def main() -> None:
    cli()


def _some(letters: tuple[str, ...], everything: bool) -> None:
    if bool(letters) == everything:
        raise click.UsageError("name messages by their id, or give --all")


def _settings() -> Any:
    """For commands that do one thing: what is wrong with a tenant's file is told by those that were asked for it."""
    import logging

    from config.settings import Settings

    logging.getLogger("config").setLevel(logging.CRITICAL)
    return Settings.from_env()


def _tenants_of(only: str | None) -> Any:
    from config.tenants import Tenants

    tenants = Tenants(_settings())
    tenants.load()
    if only is None:
        return tenants.all()
    tenant = tenants.get(only)
    if tenant is None:
        raise Failed(f"there is no tenant {only!r} that works: see `chat-chat tenants check`")
    return [tenant]


@contextmanager
def _bar(name: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on standard error; on anything but a terminal its name alone."""
    with click.progressbar(length=0, label=name, file=sys.stderr, show_pos=True) as bar:

        def told(done: int, of: int) -> None:
            bar.length = of
            bar.update(done - bar.pos)

        yield told


def _show(outcome: Any, *, findings: bool = False) -> None:
    """Findings of a check are what was asked for and go to standard output, also when they are bad."""
    if outcome.text:
        click.echo(outcome.text, err=outcome.code != 0 and not findings)
    if outcome.code:
        raise SystemExit(outcome.code)


def _report(lines: Any) -> None:
    """Prints `(well, text)` pairs; exit status 1 if any is not well."""
    failed = False
    for well, text in lines:
        failed = failed or not well
        click.echo(text, err=not well)
    if failed:
        raise SystemExit(1)
