"""A server that tests may kill."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.acceptance.processes import RedisServer


@pytest.fixture
async def server() -> AsyncIterator[RedisServer]:
    async with RedisServer() as one:
        yield one
