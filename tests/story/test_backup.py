"""A backup is made while everything runs, the machine is lost, and what was kept is put back."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
import redis
from click.testing import CliRunner

from config.settings import Settings
from config.tenants import Tenants
from gateway.assembly import inbox_client, memory_of
from gateway.backup import commands
from gateway.blocked import Blocked
from gateway.cli import Failed, cli
from gateway.inbox import opening
from gateway.inbox.base import Policy, event_of
from gateway.inbox.redis import RedisInbox
from gateway.key_ring import KeyRing, MadeKey
from gateway.memory_commands import forget
from gateway.messages import InboundMessage
from memory.conversations import Conversation
from memory.keys import ConversationRef
from memory.memory_manager import MemoryManager
from tests import postgres
from tests.house import House, house

ANN, BOB = "U" + "a" * 32, "U" + "b" * 32
NEW, ANSWERED, BEGUN = 71, 72, 73  # chats of those who wait when the backup is made


@contextmanager
def quietly(name: str) -> Iterator[Callable[[int, int], None]]:
    yield lambda done, of: None


def written(chat: int) -> InboundMessage:
    return InboundMessage(
        tenant="shop",
        channel="telegram-main",
        platform="telegram",
        event_id=str(chat),
        user_id=f"telegram:{chat}",
        chat_id=str(chat),
        text="My order is late!",
        message_id=str(chat),
        received_at=time.time(),
    )


@asynccontextmanager
async def inbox_of(settings: Settings) -> AsyncIterator[RedisInbox]:
    assert settings.redis_url is not None
    inbox = opening.inbox_of(settings, inbox_client(settings, settings.redis_url), "test")
    yield inbox
    await inbox.close()


@asynccontextmanager
async def memory(settings: Settings) -> AsyncIterator[MemoryManager]:
    tenants = Tenants(settings)
    tenants.load()
    manager = memory_of(settings, tenants, settings.redis_url)
    yield manager
    await manager.close()


async def lived_in(home: House) -> None:
    for user, text in ((ANN, "My name is Ploy and my order is late!"), (BOB, "My order is late!")):
        assert await home.line_says(user, text) == 200
    await home.quiet()
    data = home.settings.data_dir
    async with memory(home.settings) as manager:
        Blocked(manager.lists).block("shop", ["line:U" + "d" * 32])
        KeyRing(manager.lists).make("shop", "till", datetime.now(UTC))
        now = datetime.now(UTC)
        await manager.conversations.open(Conversation("shop", "order-1", f"line:{ANN}", "admin", "Order 1", now, now))
    media = data / "media" / "shop" / f"line:{ANN}"
    media.mkdir(parents=True)
    (media / "photo.jpg").write_bytes(bytes(range(256)))
    os.utime(media / "photo.jpg", (1e9, 1e9))


async def left_waiting(settings: Settings) -> None:
    """One message is new; one was answered, of which Redis does not know yet; one is in hand."""
    async with inbox_of(settings) as inbox:
        await inbox.put([(written(BEGUN), Policy())])
        assert len((await inbox.claim(5)).claims) == 1
        await inbox.put([(written(chat), Policy()) for chat in (NEW, ANSWERED)])
    said = {"role": "user", "message": "My order is late!", "message_id": event_of(written(ANSWERED))}
    async with memory(settings) as manager:
        await manager.transcripts.append(ConversationRef("shop", f"telegram:{ANSWERED}"), [said])  # type: ignore[list-item]


def lose_everything(settings: Settings) -> None:
    """But for the list of who was forgotten, which is kept elsewhere."""
    with redis.Redis.from_url(str(settings.redis_url)) as client:
        client.flushall()
    for path in settings.data_dir.iterdir():
        if path.name not in ("forgotten", "pseudonym_key"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


async def known_of(settings: Settings, user: str) -> tuple[object, list[str]]:
    async with memory(settings) as manager:
        found = await manager.longterm.load("shop", user)
        said = await manager.transcripts.everything("shop", user)
    return found, [str(line["message"]) for line in said]


async def small_of(settings: Settings) -> tuple[list[MadeKey], frozenset[str], list[Conversation]]:
    """Keys, blocked people, opened conversations."""
    async with memory(settings) as manager:
        opened = await manager.conversations.all("shop")
        return KeyRing(manager.lists).of("shop"), Blocked(manager.lists).of("shop"), opened


async def the_machine_is_lost(settings: Settings, tmp_path: Path, lose: Callable[[], None]) -> list[str]:
    await left_waiting(settings)
    ann = await known_of(settings, f"line:{ANN}")
    photo = settings.data_dir / "media" / "shop" / f"line:{ANN}" / "photo.jpg"
    small = await small_of(settings)
    await commands.backup(settings, tmp_path / "kept", quietly)
    await forget(settings, "shop", f"line:{BOB}")
    lose()
    lines, whole = await commands.restore(settings, tmp_path / "kept", False, quietly)
    assert whole
    assert "2 messages wait to be answered; 1 people had been forgotten and stay so" in lines
    assert await known_of(settings, f"line:{ANN}") == ann
    assert (photo.read_bytes(), photo.stat().st_mtime) == (bytes(range(256)), 1e9)
    assert (await small_of(settings), [len(one) for one in small]) == (small, [1, 1, 1])
    assert await known_of(settings, f"line:{BOB}") == (None, [])
    return lines


async def what_waited_is_answered_once(tmp_path: Path, redis_url: str, **more: str) -> None:
    async with house(tmp_path, redis_url, **more) as home, inbox_of(home.settings) as inbox:
        await home.quiet()
        assert {chat: len(home.telegram_shows(chat)) for chat in (NEW, ANSWERED, BEGUN)} == {
            NEW: 1,
            ANSWERED: 0,
            BEGUN: 1,
        }
        # The platforms send again what they were not sure of: it is known.
        assert await inbox.put([(written(chat), Policy()) for chat in (NEW, ANSWERED, BEGUN)]) == [False] * 3
        # Ann's session goes on where it was.
        assert await home.line_says(ANN, "My order is still late!") == 200
        await home.quiet()
    async with memory(home.settings) as manager:
        stored = await manager.sessions.load(ConversationRef("shop", f"line:{ANN}"))
        assert stored is not None
        told = [line["message"] for line in stored.history if line["role"] == "user"]
        assert told == ["My name is Ploy and my order is late!", "My order is still late!"]


async def test_what_waits_is_answered_once_after_a_restore_and_who_was_forgotten_stays_so(
    tmp_path: Path, redis_url: str
) -> None:
    async with house(tmp_path, redis_url) as home:
        await lived_in(home)
    await the_machine_is_lost(home.settings, tmp_path, lambda: lose_everything(home.settings))
    await what_waited_is_answered_once(tmp_path, redis_url)


@pytest.mark.slow
async def test_people_in_a_database_are_in_the_backup_too(socket_folder: Path, tmp_path: Path, redis_url: str) -> None:
    with postgres.emptied(socket_folder) as url:
        async with house(tmp_path, redis_url, longterm_url=url) as home:
            await lived_in(home)

        def lose() -> None:
            lose_everything(home.settings)
            with postgres.emptied(socket_folder):
                pass

        await the_machine_is_lost(home.settings, tmp_path, lose)
        assert not (home.settings.data_dir / "longterm").exists()
        await what_waited_is_answered_once(tmp_path, redis_url, longterm_url=url)


async def test_on_a_cluster_what_waits_is_put_back_too_and_on_a_plain_server_what_a_cluster_had(
    tmp_path: Path, redis_url: str, redis_cluster_url: str
) -> None:
    places = {"data_dir": tmp_path / "data", "config_dir": tmp_path / "config"}
    cluster = Settings(redis_url=redis_cluster_url, redis_cluster=True, **places)  # type: ignore[arg-type]
    plain = Settings(redis_url=redis_url, **places)  # type: ignore[arg-type]
    async with inbox_of(cluster) as inbox:
        await inbox.put([(written(chat), Policy()) for chat in (NEW, BEGUN)])
        assert len((await inbox.claim(1)).claims) == 1
    await commands.backup(cluster, tmp_path / "kept", quietly)
    with redis.Redis.from_url(redis_cluster_url) as client:
        client.flushall()
    for settings in (cluster, plain):
        _, whole = await commands.restore(settings, tmp_path / "kept", True, quietly)
        async with inbox_of(settings) as inbox:
            found = [claim.messages[0].event_id for _ in range(4) for claim in (await inbox.claim(5)).claims]
            assert (whole, sorted(found)) == (True, ["71", "73"])


async def test_something_living_is_only_replaced_when_told_so_and_never_while_a_worker_runs(
    tmp_path: Path, redis_url: str
) -> None:
    to = tmp_path / "kept"
    async with house(tmp_path, redis_url) as home:
        assert await home.line_says(ANN, "My order 1 is late!") == 200
        await home.quiet()
        await commands.backup(home.settings, to, quietly)
        assert await home.line_says(ANN, "My order 2 is late!") == 200
        assert await home.line_says(BOB, "My order 3 is late!") == 200
        await home.quiet()
        with pytest.raises(Failed, match="a worker runs"):
            await commands.restore(home.settings, to, True, quietly)
    with pytest.raises(Failed, match=r"there is something already \(Redis, .*long-term memory\)"):
        await commands.restore(home.settings, to, False, quietly)
    _, whole = await commands.restore(home.settings, to, True, quietly)
    assert whole
    _, said = await known_of(home.settings, f"line:{ANN}")
    assert said[0] == "My order 1 is late!"
    assert len(said) == 2
    assert await known_of(home.settings, f"line:{BOB}") == (None, [])


def test_what_was_changed_in_a_backup_or_was_not_finished_is_not_put_back(
    tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDIS_URL", redis_url)
    monkeypatch.setenv("CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "data"))
    there, kept = tmp_path / "data" / "blocked" / "shop.json", tmp_path / "kept"
    there.parent.mkdir(parents=True)
    there.write_text('["line:U1"]')

    def called(*words: str) -> tuple[int, str]:
        done = CliRunner().invoke(cli, words)
        return done.exit_code, done.output

    code, said = called("backup", "--to", str(kept))
    assert (code, "3 files, their sums in" in said) == (0, True)
    assert called("backup", "--to", str(kept))[0] == 1
    assert called("backup", "--to", str(tmp_path / "data" / "kept"))[0] == 1
    there.unlink()
    (kept / "blocked" / "shop.json").write_text("[]")
    code, said = called("restore", str(kept))
    assert (code, "shop.json is missing or was changed: nothing was put back" in said) == (1, True)
    assert not there.exists()
    (kept / "blocked" / "shop.json").write_text('["line:U1"]')
    (kept / "more.txt").write_text("")
    assert called("restore", str(kept))[0] == 1
    (kept / "more.txt").unlink()
    assert called("restore", str(kept))[0] == 0
    assert there.read_text() == '["line:U1"]'
    (kept / "SHA256SUMS").unlink()
    assert called("restore", str(kept), "--over")[0] == 1
