"""What every store of sessions does: in this process, on a fake Redis, on a real server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta, timezone

import fakeredis
import pytest
import redis.asyncio as aioredis

from gateway.backup.keyspace import Keyspace
from memory import keys
from memory.errors import SessionsUnavailable
from memory.facts import Fact, Priority
from memory.keys import ConversationRef
from memory.models import ShortTermMemory
from memory.protocols import Sessions
from memory.redis_client import connect
from memory.short_term import codec, lua
from memory.short_term.in_process import InProcessSessions
from memory.short_term.redis import RedisSessions

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
REF = ConversationRef("store_001", "line:U1")
SIDE = ConversationRef("store_001", "line:U1", "sales", "c-2")
LINES = [
    {"role": "user", "message": "สวัสดี", "timestamp": "2026-03-01T09:00:00Z", "message_id": "m1"},
    {"role": "bot", "message": "ค่ะ 🙏", "message_id": "re:m1", "metadata": {"platform_ids": ["5"]}},
]
FACT = Fact(
    id="f1", key="name", value="Nok", text="Nok", priority=Priority.HIGH, created_at=NOW, last_used_at=NOW, source="m1"
)


def session(ref: ConversationRef = REF, *, over_in: float = 1800, **fields: object) -> ShortTermMemory:
    return ShortTermMemory(
        tenant_id=ref.tenant,
        user_id=ref.user,
        session_id="s1",
        agent=ref.agent,
        conversation_id=ref.conversation,
        created_at=NOW,
        expires_at=NOW + timedelta(seconds=over_in),
    ).model_copy(update=fields)


class Contract:
    """The suite; each backend gives an empty `store`."""

    @pytest.fixture
    async def store(self) -> Sessions:
        raise NotImplementedError

    async def test_nothing_stored_is_none(self, store: Sessions) -> None:
        assert await store.load(REF) is None

    async def test_a_saved_session_comes_back_with_the_next_rev(self, store: Sessions) -> None:
        saved = session(history=[{"role": "user", "message": "สวัสดีครับ 🙏", "message_id": "m1"}], summary="สรุป")
        assert await store.save(REF, saved, 1800) is True
        assert await store.load(REF) == saved.model_copy(update={"rev": 1})

    async def test_changing_what_was_saved_or_loaded_changes_nothing_stored(self, store: Sessions) -> None:
        saved = session()
        await store.save(REF, saved, 1800)
        saved.history.append({"role": "user", "message": "later"})
        loaded = await store.load(REF)
        assert loaded is not None
        loaded.variables["x"] = 1
        again = await store.load(REF)
        assert again is not None
        assert (again.history, again.variables) == ([], {})

    async def test_a_save_against_an_older_rev_is_refused(self, store: Sessions) -> None:
        assert await store.save(REF, session(summary="first"), 1800) is True
        assert await store.save(REF, session(summary="second"), 1800) is False
        loaded = await store.load(REF)
        assert loaded is not None
        assert (loaded.rev, loaded.summary) == (1, "first")

    async def test_a_save_against_a_rev_that_is_gone_is_refused(self, store: Sessions) -> None:
        assert await store.save(REF, session(rev=7), 1800) is False
        assert await store.load(REF) is None

    async def test_of_writers_at_once_one_wins_each_round(self, store: Sessions) -> None:
        saved = await asyncio.gather(*(store.save(REF, session(summary=str(n)), 1800) for n in range(20)))
        assert saved.count(True) == 1

    async def test_conversations_of_a_person_do_not_meet(self, store: Sessions) -> None:
        await store.save(REF, session(summary="main"), 1800)
        await store.save(SIDE, session(SIDE, summary="side"), 1800)
        loaded = [await store.load(REF), await store.load(SIDE)]
        assert [one.summary for one in loaded if one] == ["main", "side"]

    async def test_tenants_do_not_meet(self, store: Sessions) -> None:
        await store.save(REF, session(), 1800)
        assert await store.load(REF._replace(tenant="store_002")) is None

    async def test_an_expired_session_can_still_be_read_in_its_grace(self, store: Sessions) -> None:
        await store.save(REF, session(over_in=-1), 1800)
        loaded = await store.load(REF)
        assert loaded is not None
        assert loaded.expired(NOW) is True

    async def test_expired_names_those_that_are_over_and_no_others(self, store: Sessions) -> None:
        odd = ConversationRef("store_001", 'we"ird*[x]\\ :{}ก' * 20, "sales", "c_1")
        await store.save(REF, session(over_in=60), 1800)
        await store.save(SIDE, session(SIDE, over_in=0), 1800)
        await store.save(odd, session(odd, over_in=-5), 1800)
        assert [ref async for ref in store.expired(NOW)] == [odd, SIDE]
        assert [ref async for ref in store.expired(NOW, limit=1)] == [odd]

    async def test_a_session_without_expiry_is_never_over(self, store: Sessions) -> None:
        await store.save(REF, session(expires_at=None), 0)
        assert [ref async for ref in store.expired(NOW + timedelta(days=3650))] == []
        assert await store.forget(REF.tenant, REF.user) == 1

    async def test_a_consolidated_session_is_gone_for_one_caller(self, store: Sessions) -> None:
        await store.save(REF, session(over_in=-1), 1800)
        outcomes = await asyncio.gather(*(store.consolidated(REF, 1) for _ in range(5)))
        assert sorted(outcomes) == [False, False, False, False, True]
        assert await store.load(REF) is None
        assert [ref async for ref in store.expired(NOW)] == []

    async def test_a_newer_session_survives_the_old_ones_consolidation(self, store: Sessions) -> None:
        await store.save(REF, session(over_in=-1), 1800)
        await store.save(REF, session(rev=1, over_in=-1, summary="new"), 1800)
        assert await store.consolidated(REF, 1) is False
        loaded = await store.load(REF)
        assert loaded is not None
        assert loaded.summary == "new"
        assert [ref async for ref in store.expired(NOW)] == [REF]

    async def test_consolidating_nothing_tidies_up(self, store: Sessions) -> None:
        assert await store.consolidated(REF, 0) is False
        assert [ref async for ref in store.expired(NOW)] == []

    async def test_delete_tells_whether_there_was_one(self, store: Sessions) -> None:
        await store.save(REF, session(), 1800)
        assert [await store.delete(REF), await store.delete(REF)] == [True, False]

    async def test_forget_removes_every_conversation_of_that_user_alone(self, store: Sessions) -> None:
        others = [REF._replace(user="line:U10"), REF._replace(user="line:U*"), REF._replace(tenant="store_002")]
        for ref in (REF, SIDE, *others):
            await store.save(ref, session(ref), 1800)
        assert await store.forget("store_001", "line:U1") == 2
        assert [await store.load(REF), await store.load(SIDE)] == [None, None]
        assert [await store.load(ref) is not None for ref in others] == [True, True, True]
        assert await store.forget("store_001", "line:U*") == 1

    async def test_the_name_general_is_the_default_agent(self, store: Sessions) -> None:
        await store.save(REF._replace(agent="general"), session(over_in=-1), 1800)
        assert await store.load(REF) is not None
        assert [ref async for ref in store.expired(NOW)] == [REF]

    async def test_a_lone_surrogate_does_not_stop_a_save(self, store: Sessions) -> None:
        odd = REF._replace(user="u\ud800")
        assert await store.save(odd, session(odd, variables={"x": "\udfff"}), 1800) is True
        loaded = await store.load(odd)
        assert loaded is not None
        assert loaded.variables == {"x": "�"}


class TestInProcess(Contract):
    @pytest.fixture
    async def store(self) -> Sessions:
        return InProcessSessions(clock=NOW.timestamp)

    async def test_a_session_is_gone_after_its_grace(self) -> None:
        clock = [NOW.timestamp()]
        store = InProcessSessions(clock=lambda: clock[0])
        await store.save(REF, session(), 1800)
        clock[0] += 3599
        assert await store.load(REF) is not None
        clock[0] += 1
        assert await store.load(REF) is None


@pytest.fixture
async def fake() -> AsyncIterator[aioredis.Redis]:
    async with fakeredis.FakeAsyncRedis() as client:
        yield client


@pytest.fixture
async def real(redis_url: str) -> AsyncIterator[aioredis.Redis]:
    async with connect(redis_url) as client:
        yield client


class TestFakeRedis(Contract):
    @pytest.fixture
    async def store(self, fake: aioredis.Redis) -> Sessions:
        return RedisSessions(fake)


class TestRedis(Contract):
    @pytest.fixture
    async def store(self, real: aioredis.Redis) -> Sessions:
        return RedisSessions(real)


class TestRedisCluster(Contract):
    @pytest.fixture
    async def store(self, redis_cluster_url: str) -> AsyncIterator[Sessions]:
        store = RedisSessions(connect(redis_cluster_url, cluster=True), cluster=True)
        yield store
        await store.close()


class TestParts:
    """Of the index on a cluster."""

    @pytest.fixture
    async def client(self, redis_cluster_url: str) -> AsyncIterator[aioredis.Redis]:
        async with connect(redis_cluster_url, cluster=True) as client:
            yield client

    async def test_no_slot_has_all_marks(self, client: aioredis.Redis) -> None:
        store = RedisSessions(client, cluster=True)
        refs = [REF._replace(user=f"line:U{number}") for number in range(64)]
        for ref in refs:
            await store.save(ref, session(ref), 1800)
        marks = {index: await client.zcard(index) for index in lua.INDEXES}
        assert (sum(marks.values()), await client.zcard(lua.INDEX)) == (64, 0)
        assert max(marks.values()) < 12
        assert len({client.keyslot(index) for index, count in marks.items() if count}) > 20  # type: ignore[attr-defined]
        over = [ref async for ref in store.expired(NOW + timedelta(hours=1))]
        assert sorted(over) == sorted(refs)
        assert [ref async for ref in store.of("store_001", "line:U7")] == [refs[7]]

    async def test_marks_of_an_older_version_are_taken_over_and_the_newer_one_of_two_counts(
        self, client: aioredis.Redis
    ) -> None:
        """That version goes on beside this one for a while."""
        store = RedisSessions(client, cluster=True)
        refs = [REF._replace(user=f"line:U{number}") for number in range(5)]
        for ref in refs:
            await client.zadd(lua.INDEX, {lua.member(ref): NOW.timestamp() * 1000})
        await client.zadd(lua.INDEX, {lua.member(SIDE): float("inf")})
        await store.save(refs[0], session(refs[0], over_in=600), 1800)
        assert [ref async for ref in store.of("store_001", "line:U3")] == [refs[3]]
        await store.delete(refs[4])
        over = [ref async for ref in store.expired(NOW + timedelta(seconds=1))]
        assert sorted(over) == refs[1:4]
        assert await client.zrange(lua.INDEX, 0, -1) == []
        await client.zadd(lua.INDEX, {lua.member(refs[1]): (NOW.timestamp() + 900) * 1000})
        assert sorted([ref async for ref in store.expired(NOW + timedelta(seconds=1))]) == refs[2:4]
        left = {raw: over for index in lua.INDEXES for raw, over in await client.zrange(index, 0, -1, withscores=True)}
        assert left[lua.member(SIDE).encode()] == float("inf")
        assert await store.consolidated(refs[2], 0) is False
        assert sorted([ref async for ref in store.expired(NOW + timedelta(seconds=1))]) == [refs[3]]

    async def test_a_backup_has_them_as_a_plain_server_does_and_a_restore_finds_them_again(
        self, client: aioredis.Redis, real: aioredis.Redis
    ) -> None:
        refs = [REF._replace(user=f"line:U{number}") for number in range(20)]
        store = RedisSessions(client, cluster=True)
        for ref in refs:
            await store.save(ref, session(ref), 1800)
        saved = [one async for some in Keyspace(client, cluster=True).records() for one in some]
        await client.delete(*lua.INDEXES)
        assert await Keyspace(real, cluster=False).put(saved) == []
        assert len([ref async for ref in RedisSessions(real).expired(NOW + timedelta(hours=1))]) == 20
        marks = [one for one in saved if one.key == lua.INDEX.encode()]
        assert await Keyspace(client, cluster=True).put(marks) == []
        assert sorted([ref async for ref in store.expired(NOW + timedelta(hours=1))]) == sorted(refs)


class TestCap:
    async def test_the_least_recently_written_of_a_tenant_goes_first(self, redis_url: str) -> None:
        async with connect(redis_url) as client:
            for store in (InProcessSessions(max_conversations=2), RedisSessions(client, max_conversations=2)):
                first, second, third = (REF._replace(user=f"u{n}") for n in (1, 2, 3))
                elsewhere = first._replace(tenant="store_002")
                await store.save(elsewhere, session(elsewhere), 1800)
                await store.save(first, session(first), 1800)
                await store.save(second, session(second), 1800)
                await store.save(first, session(first, rev=1), 1800)
                await store.save(third, session(third), 1800)
                left = [await store.load(ref) is not None for ref in (first, second, third, elsewhere)]
                assert left == [True, False, True, True]

    async def test_a_session_written_by_a_script_of_its_own_counts_too(self, real: aioredis.Redis) -> None:
        store = RedisSessions(real, max_conversations=1)
        await store.save(REF, session(), 1800)
        await real.set(keys.session(SIDE), codec.encode(session(SIDE), 1), ex=60)
        await store.used(SIDE)
        assert [await store.load(REF) is not None, await store.load(SIDE) is not None] == [False, True]


class TestStoredForm:
    async def test_a_session_is_one_string_key_with_a_ttl_of_at_most_an_hour_more(self, real: aioredis.Redis) -> None:
        await RedisSessions(real).save(REF, session(), 1800)
        assert await real.keys("sm:*") == [b"sm:store_001:line:U1"]
        assert (await real.get("sm:store_001:line:U1"))[:9] == b'{"rev":1,'
        assert 3_590_000 < await real.pttl("sm:store_001:line:U1") <= 3_600_000
        await RedisSessions(real).save(SIDE, session(SIDE), 7200)
        assert 10_790_000 < await real.pttl("sm:store_001:line:U1/sales/c-2") <= 10_800_000

    async def test_what_can_not_be_read_is_set_aside_and_a_new_session_takes_its_place(
        self, real: aioredis.Redis, caplog: pytest.LogCaptureFixture
    ) -> None:
        store = RedisSessions(real)
        for broken in (b"", b"{", b'{"rev":3,"tenant_id":"store_001"', b"[]", b"\xff\x00", b'{"rev":1}'):
            await real.set(keys.session(REF), broken, ex=60)
            assert await store.load(REF) is None
            assert await real.get(keys.beside(keys.session(REF), "broken")) == broken
            assert await real.ttl(keys.beside(keys.session(REF), "broken")) > 0
            assert await store.save(REF, session(), 1800) is True
            await real.delete(keys.session(REF))
        assert "set aside" in caplog.text

    async def test_a_session_of_the_first_version_loads(self, real: aioredis.Redis) -> None:
        old = (
            '{"tenant_id":"store_001","user_id":"line:U1","session_id":"sess_20250730_001","history":'
            '[{"role":"user","message":"สวัสดีครับ"},{"role":"bot","message":"สวัสดีค่ะ"}],"summary":"s",'
            '"state":"awaiting_input","last_intent":"greeting","variables":{"preferred_language":"th"},'
            '"expires_at":"2025-07-30T12:00:00Z"}'
        )
        await real.set(keys.session(REF), old, ex=60)
        store = RedisSessions(real)
        loaded = await store.load(REF)
        assert loaded is not None
        assert (loaded.rev, loaded.last_intent, len(loaded.history)) == (0, "greeting", 2)
        assert loaded.expires_at == datetime(2025, 7, 30, 12, tzinfo=UTC)
        assert await store.save(REF, loaded, 1800) is True

    async def test_the_index_gives_back_what_it_was_given(self) -> None:
        for ref in (REF, SIDE, ConversationRef("t", "ก\ud800\n\"'", "a/b", "c")):
            assert lua.conversation_of(lua.member(ref)) == ref

    def test_the_rev_is_read_from_the_first_bytes(self) -> None:
        raw = codec.encode(session(rev=3), 41)
        assert [codec.stored_rev(raw), codec.stored_rev(b"{"), codec.stored_rev(None)] == [41, 0, 0]
        assert codec.decode(raw) == session(rev=41)

    def test_what_has_its_default_is_left_out_and_readers_of_every_version_fill_it_in(self) -> None:
        raw = codec.encode(session(), 1)
        assert json.loads(raw) == {
            "rev": 1,
            "tenant_id": "store_001",
            "user_id": "line:U1",
            "session_id": "s1",
            "created_at": "2026-03-01T09:00:00Z",
            "expires_at": "2026-03-01T09:30:00Z",
        }
        assert codec.decode(raw) == ShortTermMemory.model_validate_json(raw) == session(rev=1)

    @pytest.mark.parametrize(
        "fields",
        [
            {"history": LINES, "carried": LINES[:1], "recent_ids": ["m0"], "state": "human", "last_intent": "INQUIRY"},
            {
                "history": [{**LINES[0], "reactions": [{"by": 3}]}],
                "variables": {"n": 2**70, "x": [1.5, None, {"a": {}}]},
            },
            {"facts": [FACT], "summary": "สรุป", "expires_at": None, "agent": "sales", "conversation_id": "c-2"},
            {"created_at": NOW.replace(microsecond=120_000).astimezone(timezone(timedelta(hours=7)))},
        ],
        ids=["lines", "newer and long", "facts", "elsewhere"],
    )
    def test_every_field_comes_back_here_and_in_an_older_version(self, fields: dict[str, object]) -> None:
        saved = session(**fields)
        raw = codec.encode(saved, 7)
        assert codec.decode(raw) == ShortTermMemory.model_validate_json(raw) == saved.model_copy(update={"rev": 7})
        older = saved.model_copy(update={"rev": 6}).model_dump_json().encode()  # as versions before this one wrote it
        assert codec.decode(older) == saved.model_copy(update={"rev": 6})

    def test_values_that_json_has_not_are_written_as_ever(self) -> None:
        odd = {"at": NOW, "half": "\ud800", "pair": (1, 2), "raw": b"x"}
        read = codec.decode(codec.encode(session(variables=odd, user_id="line:\ud800"), 1))
        assert read.variables == {"at": "2026-03-01T09:00:00Z", "half": "\ufffd", "pair": [1, 2], "raw": "x"}
        assert read.user_id == "line:\ufffd"

    @pytest.mark.parametrize(
        "odd",
        [
            {"history": "hello"},
            {"history": ["hello"]},
            {"history": {"role": "user"}},
            {"history": [{"role": "system", "message": "x"}]},
            {"history": [{"role": "user"}]},
            {"history": [{"role": "user", "message": 3}]},
            {"carried": [{"role": "user", "message": "x", "message_id": 3}]},
            {"history": [{"role": "user", "message": "x", "metadata": "y"}]},
            {"history": [{"role": ["user"], "message": "x"}]},
            {"recent_ids": [None]},
            {"state": "asleep"},
            {"state": ["human"]},
            {"variables": []},
            {"tenant_id": None},
            {"rev": "x"},
            {"created_at": "yesterday"},
            {"expires_at": []},
        ],
        ids=str,
    )
    def test_what_is_no_session_is_refused(self, odd: dict[str, object]) -> None:
        with pytest.raises(ValueError, match=r"\S"):
            codec.decode(json.dumps(json.loads(codec.encode(session(), 1)) | odd).encode())

    @pytest.mark.parametrize(("ttl", "kept"), [(1800, 3_600_000), (7200, 10_800_000), (0, 0), (0.5, 1000)])
    def test_the_grace_is_at_most_an_hour(self, ttl: float, kept: int) -> None:
        assert codec.ttl_ms(ttl) == kept


class TestAway:
    async def test_a_server_that_can_not_be_reached_is_one_error_of_ours(self) -> None:
        store = RedisSessions(connect("unix:///nonexistent/redis.sock"))
        with pytest.raises(SessionsUnavailable):
            await store.load(REF)
        with pytest.raises(SessionsUnavailable):
            await store.save(REF, session(), 1800)
        with pytest.raises(SessionsUnavailable):
            await store.forget("store_001", "u")
        with pytest.raises(SessionsUnavailable):
            [ref async for ref in store.expired(NOW)]
        await store.close()
