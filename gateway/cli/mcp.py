"""`chat-chat mcp`."""

from __future__ import annotations

import click

from config.extras import install
from gateway.cli.common import EXAMPLE, Failed, guarded, in_loop, read_settings


@click.command(epilog=EXAMPLE + "CHAT_CHAT_API_KEY=… chat-chat mcp --tenant demo")
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
        raise Failed(f"this needs the extra mcp: {install('mcp')}") from error
    if http:
        in_loop(mcp_server.over_http(read_settings(), host, port))
        return
    if not key:
        raise click.UsageError("give the API key as CHAT_CHAT_API_KEY")
    try:
        in_loop(mcp_server.over_stdio(read_settings(), key, tenant))
    except ValueError as error:
        raise Failed(str(error).replace("?tenant=…", "--tenant …")) from error
