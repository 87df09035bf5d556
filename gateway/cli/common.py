"""What the commands share: how they fail, print and read their settings."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import click

if TYPE_CHECKING:
    from config.settings import Settings

P = ParamSpec("P")
R = TypeVar("R")

EXAMPLE = "\b\nExample:\n  "


class Failed(click.ClickException):
    """The job could not be done: one line to standard error, exit status 1."""

    def show(self, file: Any = None) -> None:
        click.echo(f"chat-chat: {' '.join(self.message.split())}", err=True)


class Misused(Failed):
    """A wrong call: one line to standard error, with the command whose help tells more; exit status 2."""

    exit_code = 2

    def __init__(self, error: click.UsageError) -> None:
        said = " ".join(error.format_message().split()).rstrip(".")
        super().__init__(f"{said}; see `{error.ctx.command_path} --help`" if error.ctx else said)


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
        import asyncio

        return asyncio.run(work)
    return uvloop.run(work)


def read_settings() -> Any:
    """For commands that do one thing: what is wrong with a tenant's file is told by those that were asked for it."""
    import logging

    from config.settings import Settings

    for told_besides in ("config", "psycopg"):  # the driver tells each try to connect, in several lines
        logging.getLogger(told_besides).setLevel(logging.CRITICAL)
    return Settings.from_env()


def tenants_of(only: str | None) -> Any:
    from config.tenants import Tenants

    tenants = Tenants(read_settings())
    tenants.load()
    if only is None:
        return tenants.all()
    tenant = tenants.get(only)
    if tenant is None:
        raise Failed(f"there is no tenant {only!r} that works: see `chat-chat tenants check`")
    return [tenant]


def doubt(settings: Settings, tenant: str) -> str:
    """What follows "nothing found": empty, but for a tenant without a file, whose id may be mistyped. What is kept of a
    shop that is gone can be asked for all the same."""
    if (settings.config_dir / "tenants" / f"{tenant}.yaml").exists():
        return ""
    return f"; there is no tenant file {tenant}.yaml: `chat-chat tenants list` shows which there are"


@contextmanager
def progress_bar(name: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on standard error; on anything but a terminal its name alone."""
    with click.progressbar(length=0, label=name, file=sys.stderr, show_pos=True) as bar:

        def told(done: int, of: int) -> None:
            bar.length = of
            bar.update(done - bar.pos)

        yield told


def show(outcome: Any, *, findings: bool = False) -> None:
    """Findings of a check are what was asked for and go to standard output, also when they are bad."""
    if outcome.text:
        click.echo(outcome.text, err=outcome.code != 0 and not findings)
    if outcome.code:
        raise SystemExit(outcome.code)


def report(lines: Any) -> None:
    """Prints `(well, text)` pairs; exit status 1 if any is not well."""
    failed = False
    for well, text in lines:
        failed = failed or not well
        click.echo(text, err=not well)
    if failed:
        raise SystemExit(1)
