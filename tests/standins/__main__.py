"""`python -m tests.standins`: the stand-ins as one process, to be killed and started again.

Prints one line of JSON with their addresses once they listen. With `--journal DIR` what the platforms know (spent
tokens, retry keys, screens, calls) outlives a kill -9, as the platforms' knowledge would.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from tests.standins import LineChannel, LineStandIn, OpenRouterStandIn, TelegramStandIn


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.standins", description=__doc__)
    parser.add_argument("--line-port", type=int, help="api.line.me here; 0: any; left out: no LINE")
    parser.add_argument("--line-data-port", type=int, default=0, help="api-data.line.me here")
    parser.add_argument("--telegram-port", type=int, help="api.telegram.org here")
    parser.add_argument("--llm-port", type=int, help="OpenRouter here")
    parser.add_argument(
        "--line-channel", action="append", metavar="TOKEN:SECRET:USER_ID[:CHANNEL_ID]", help="may come several times"
    )
    parser.add_argument("--any-reply-token", action="store_true", help="reply tokens not issued here work once, too")
    parser.add_argument("--telegram-token", action="append", help="a bot's token; may come several times")
    parser.add_argument("--llm-key", action="append", help="an API key; may come several times")
    parser.add_argument("--journal", type=Path, metavar="DIR", help="keep the state here over a kill")
    return parser.parse_args(arguments)


async def _serve(options: argparse.Namespace) -> None:
    def common(name: str, port: int) -> dict[str, Any]:
        if options.journal is None:
            return {"port": port}
        options.journal.mkdir(parents=True, exist_ok=True)
        return {"port": port, "journal": options.journal / f"{name}.jsonl"}

    async with AsyncExitStack() as stack:
        urls: dict[str, str] = {}
        if options.line_port is not None:
            given = [LineChannel(*each.split(":")) for each in options.line_channel or ()] or [LineChannel()]
            line = LineStandIn(
                given, known_tokens_only=not options.any_reply_token, data_port=options.line_data_port,
                **common("line", options.line_port),
            )  # fmt: skip
            await stack.enter_async_context(line)
            urls |= {"line": line.url, "line_data": line.data_url}
        if options.telegram_port is not None:
            tokens = options.telegram_token or ["1000001:first-test-bot"]
            telegram = TelegramStandIn(tokens, **common("telegram", options.telegram_port))
            await stack.enter_async_context(telegram)
            urls["telegram"] = telegram.url
        if options.llm_port is not None:
            keys = options.llm_key or ["sk-or-test-1"]
            llm = OpenRouterStandIn(keys, **common("llm", options.llm_port))
            await stack.enter_async_context(llm)
            urls |= {"llm": llm.url, "llm_control": llm.root}
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        sys.stdout.write(json.dumps(urls) + "\n")
        sys.stdout.flush()
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(_serve(_options(sys.argv[1:])))
