"""What every backend of the short lists and of opened conversations does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import pytest

from config.tenants import Tenant
from gateway.blocked import Blocked, OptedOut
from gateway.key_ring import MOST, NOTED_EVERY, KeyRing
from gateway.routes.auth import ADMIN_OPENS, Keys, name_of
from memory.conversations import Conversation, Conversations
from memory.lists import KEYS, KeptLists
from memory.small import Small

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
NEW = Conversation("shop", "order-1", "web:ann", "key:1", "Order 1", NOW, NOW)


def tenant(name: str) -> Tenant:
    return Tenant.model_validate({"id": name, "name": name, "channels": {}})


class ListsContract:
    """`here` and `there` are two processes; `looked` waits until the other one has had its next look."""

    def test_a_key_opens_its_tenant_until_it_is_revoked_also_in_another_process(
        self, here: KeptLists, there: KeptLists, looked: Callable[[], None]
    ) -> None:
        ring = KeyRing(here)
        keys = Keys("the admin key", lambda: [tenant("a"), tenant("b")], KeyRing(there))
        made, key = ring.make("b", "the  counter", NOW)
        looked()
        assert (keys.whose(key), keys.whose("the admin key"), keys.whose(key + "x")) == ("b", ADMIN_OPENS, None)
        assert (keys.holds("b", name_of(key)), keys.holds("a", name_of(key))) == (True, False)
        assert (made.name, made.hash) == ("the counter", sha256(key.encode()).hexdigest())
        assert key not in repr(here(KEYS).of("b"))
        assert [ring.revoke("b", made.id), ring.revoke("b", made.id)] == [True, False]
        looked()
        assert (keys.whose(key), keys.holds("b", name_of(key))) == (None, False)

    def test_a_tenant_has_so_many_keys_and_no_more(self, here: KeptLists) -> None:
        ring = KeyRing(here)
        here(KEYS).change("a", lambda there: [{"id": f"k_{number}"} for number in range(MOST - 1)])
        ring.make("a", "", NOW)
        with pytest.raises(ValueError, match="revoke one first"):
            ring.make("a", "", NOW)
        assert len(here(KEYS).of("a")) == MOST

    def test_a_keys_last_use_is_noted_now_and_then(
        self, here: KeptLists, there: KeptLists, looked: Callable[[], None]
    ) -> None:
        ring = KeyRing(here)
        ring.make("a", "", NOW)
        for minutes in (0, 1, 9):
            ring.used("a", ring.of("a")[0], NOW + timedelta(minutes=minutes))
        looked()
        assert KeyRing(there).of("a")[0].last_used == "2026-03-01T09:00:00Z"
        ring.used("a", ring.of("a")[0], NOW + NOTED_EVERY + timedelta(minutes=1))
        looked()
        assert KeyRing(there).of("a")[0].last_used == "2026-03-01T09:11:00Z"

    def test_who_is_blocked_is_so_in_every_process_and_for_one_tenant(
        self, here: KeptLists, there: KeptLists, looked: Callable[[], None]
    ) -> None:
        Blocked(here).block("a", ["line:U1", "telegram:2", "web:\x00ก"])
        Blocked(here).block("a", ["line:U1"])
        OptedOut(here).block("a", ["line:U3"])
        looked()
        assert (Blocked(there).of("a"), Blocked(there).of("b")) == (
            frozenset({"line:U1", "telegram:2", "web:\x00ก"}),
            frozenset(),
        )
        assert OptedOut(there).of("a") == {"line:U3"}
        Blocked(there).unblock("a", ["line:U1", "web:\x00ก", "line:U9"])
        looked()
        assert Blocked(here).of("a") == {"telegram:2"}

    def test_of_two_who_change_it_at_once_neither_is_lost(
        self, here: KeptLists, there: KeptLists, looked: Callable[[], None]
    ) -> None:
        async def both() -> None:
            work = [asyncio.to_thread(Blocked((here, there)[n % 2]).block, "shop", [f"line:U{n}"]) for n in range(8)]
            await asyncio.gather(*work)

        asyncio.run(both())
        looked()
        assert Blocked(here).of("shop") == Blocked(there).of("shop") == {f"line:U{n}" for n in range(8)}

    def test_a_change_that_raises_changes_nothing(self, here: KeptLists) -> None:
        def fails(there: list[object]) -> list[object]:
            raise ValueError("no")

        here("blocked").change("a", lambda there: ["line:U1"])
        with pytest.raises(ValueError, match="no"):
            here("blocked").change("a", fails)
        assert here("blocked").of("a") == ["line:U1"]


class ConversationsContract:
    """`store` and `other` are two processes."""

    async def test_the_first_who_opens_it_has_it(self, store: Conversations, other: Conversations) -> None:
        rivals = [replace(NEW, owner=f"key:{n}") for n in range(20)]
        opened = await asyncio.gather(*((store, other)[n % 2].open(one) for n, one in enumerate(rivals)))
        assert len({one.owner for one in opened}) == 1
        assert await other.get("shop", "order-1") == opened[0]
        assert await store.all("shop") == [opened[0]]

    async def test_it_comes_back_as_it_was_in_any_letters(self, store: Conversations, other: Conversations) -> None:
        strange = replace(NEW, id="x" * 128, user="web:" + "ก" * 300, name="ใบสั่งซื้อ \x00 1", agent="sales")
        await store.open(strange)
        assert await other.get("shop", "x" * 128) == strange
        assert await other.get("shop", "y") is None
        assert await other.get("other", "x" * 128) is None

    async def test_another_name_is_one_for_everybody(self, store: Conversations, other: Conversations) -> None:
        await store.open(NEW)
        assert await store.rename("shop", "order-1", "ใบ 1") == replace(NEW, name="ใบ 1")
        assert await other.get("shop", "order-1") == replace(NEW, name="ใบ 1")
        assert await store.rename("shop", "order-2", "x") is None

    async def test_the_last_used_comes_first_and_the_long_unused_go(self, store: Conversations) -> None:
        for name in ("a", "b", "_c"):
            await store.open(replace(NEW, id=name))
        await store.used("shop", "a", NOW + timedelta(days=2))
        await store.used("shop", "gone", NOW)
        assert [one.id for one in await store.all("shop")] == ["a", "b", "_c"]
        assert await store.prune("shop", NOW + timedelta(days=1)) == 2
        assert [one.id for one in await store.all("shop")] == ["a"]
        assert await store.all("other") == []

    async def test_a_persons_are_forgotten_and_others_stay(self, store: Conversations) -> None:
        await store.open(NEW)
        await store.open(replace(NEW, id="b", user="web:bee"))
        await store.open(replace(NEW, tenant="other"))
        assert await store.forget("shop", "web:ann") == 1
        assert [one.id for one in await store.all("shop")] == ["b"]
        assert await store.get("shop", "order-1") is None
        assert [one.id for one in await store.all("other")] == ["order-1"]

    async def test_one_is_removed_and_may_be_opened_by_somebody_else(self, store: Conversations) -> None:
        await store.open(NEW)
        assert [await store.remove("shop", "order-1"), await store.remove("shop", "order-1")] == [True, False]
        assert (await store.open(replace(NEW, owner="key:2"))).owner == "key:2"

    async def test_it_is_put_as_a_whole_in_the_place_of_another(
        self, store: Conversations, other: Conversations
    ) -> None:
        await store.open(NEW)
        whole = replace(NEW, user="web:bee", name="moved", used_at=NOW + timedelta(hours=1, milliseconds=357))
        await store.put(whole)
        assert [await other.get("shop", "order-1"), await store.get("shop", "order-1")] == [whole, whole]


async def filled(small: Small, lists: KeptLists, conversations: Conversations) -> dict[str, str]:
    """Something of each kind is kept; what `small` knows of it."""
    await asyncio.to_thread(KeyRing(lists).make, "shop", "till", NOW)
    await asyncio.to_thread(Blocked(lists).block, "shop", ["line:U1"])
    await conversations.open(replace(NEW, name="ร้าน", used_at=NOW + timedelta(milliseconds=1)))
    return await small.stamps("shop")
