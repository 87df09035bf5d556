"""Plays scripts, and says whether what they expect came true."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

from config.settings import Settings
from gateway.simulation.report import checked, counted, told
from gateway.simulation.script import read
from gateway.simulation.stage import prepared, staged, tenant_of
from gateway.simulation.stub import stubbed

Say = Callable[[str], None]


async def play(
    file: Path, settings: Settings, url: str, say: Say, *, named: str | None = None, real: bool = False
) -> int:
    """Plays one script over the server at `url`; the number of expectations that were not met. `settings` have a data
    folder that is thrown away. Raises TenantError for a script or a tenant's file that is wrong."""
    script = read(file)
    tenant, tenant_file, root = tenant_of(file, named or script.tenant, settings)
    say(f"{file}: {script.about or tenant.name}")
    async with AsyncExitStack() as stack:
        stub = await stack.enter_async_context(stubbed()) if script.stubbed and not real else None
        given = replace(
            settings,
            config_dir=root,
            redis_url=url,
            openrouter_api_key=settings.openrouter_api_key if real else None,
            longterm_url=None,
        )
        stage = await stack.enter_async_context(
            staged(script, prepared(tenant, stub, real), tenant_file, given, url, stub)
        )
        unmet = 0
        for number, turn in enumerate(script.turns, 1):
            seen = await stage.turn(turn)
            wrong = checked(seen)
            unmet += len(wrong)
            say("\n".join(told(number, seen, wrong, script.customer)))
    expected = sum(counted(turn.expect) for turn in script.turns)
    turns = f"{len(script.turns)} turn{'s' * (len(script.turns) > 1)}"
    say(f"{turns}, {expected - unmet} of {expected} expectations met\n")
    return unmet


def simulate(
    files: Sequence[Path], settings: Settings, say: Say, *, named: str | None = None, real: bool = False
) -> int:
    """Plays scripts one after the other, each over a server and a data folder of its own; how many failed."""
    from gateway.cli.common import in_loop
    from gateway.processes import use_redis

    failed = 0
    for file in files:
        with tempfile.TemporaryDirectory(prefix="chat-chat-simulation-") as folder:
            given = replace(settings, data_dir=Path(folder), redis_url=None, redis_cluster=False)
            with use_redis(given) as (url, _):
                failed += bool(in_loop(play(file, given, url, say, named=named, real=real)))
    return failed
