"""Long-term memory in PostgreSQL: the suite of every backend, the lists, and what is a database's own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from memory import MemoryConfig, MemoryManager
from memory.postgres.database import Database
from memory.postgres.store import PostgresLongTerm
from tests import postgres
from tests.contracts.longterm import NOW, LongTermContract
from tests.contracts.test_catalog import Contract as CatalogContract

pytestmark = pytest.mark.filterwarnings("ignore:.*:ResourceWarning")


@pytest.fixture(scope="module")
def socket_folder() -> Iterator[Path]:
    with postgres.server() as folder:
        yield folder


@pytest.fixture
def url(socket_folder: Path) -> Iterator[str]:
    with postgres.emptied(socket_folder) as url:
        yield url


@pytest.fixture
async def another(url: str) -> AsyncIterator[Callable[..., PostgresLongTerm]]:
    made: list[PostgresLongTerm] = []

    def store(**options: object) -> PostgresLongTerm:
        made.append(PostgresLongTerm(Database(url, size=4), clock=lambda: NOW, **options))  # type: ignore[arg-type]
        return made[-1]

    yield store
    for one in made:
        await one.close()


@pytest.fixture
def store(another: Callable[..., PostgresLongTerm]) -> PostgresLongTerm:
    return another()


class TestContract(LongTermContract):
    """What every backend does."""


class TestLists(CatalogContract):
    @pytest.fixture
    async def manager(self, url: str, tmp_path: Path) -> AsyncIterator[MemoryManager]:
        config = MemoryConfig(lm_base_path=tmp_path / "longterm", longterm_url=url)
        manager = MemoryManager(config, clock=lambda: NOW)
        yield manager
        await manager.close()
