"""`chat-chat simulate`."""

from __future__ import annotations

from pathlib import Path

import click

from gateway.cli.common import EXAMPLE, guarded, read_settings


@click.command(epilog=EXAMPLE + "chat-chat simulate config/examples/simulations/cafe.yaml")
@click.argument("scripts", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--tenant", help="Play with this tenant (a file, or an id) in place of the script's.")
@click.option(
    "--real", is_flag=True, help="Ask the real language model, with OPENROUTER_API_KEY or the tenant's own key."
)
@click.option("--lang", type=click.Choice(["th", "en"]), help="Of mistakes in a file; default: what LANG says.")
@guarded
def simulate(scripts: tuple[Path, ...], tenant: str | None, real: bool, lang: str | None) -> None:
    """Plays a conversation against a shop's file, as a test.

    No platform, key or server is needed. Shows what each message was understood as, the answer, and what is remembered;
    exit status 1 if something is not as the script expects (docs/tenants.md)."""
    from config.mistakes import TenantError
    from config.shown import language_of, shown
    from gateway import logs
    from gateway.simulation.play import simulate as play_all

    settings = read_settings()
    logging_ = logs.setup("ERROR", "console")
    try:
        failed = play_all(scripts, settings, click.echo, named=tenant, real=real)
    except TenantError as error:
        click.echo("\n".join(shown(error.mistakes, "th" if (lang or language_of()) == "th" else "en")), err=True)
        raise SystemExit(1) from error
    finally:
        logging_.close()
    raise SystemExit(1 if failed else 0)
