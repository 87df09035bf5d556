"""What long-term memory does, whatever keeps it: every backend passes this suite."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import pytest

from memory import decay, episodes, facts, identities, procedures
from memory.keys import InvalidId
from memory.models import Changes, LongTermMemory
from memory.person import new as new_person
from memory.protocols import LongTerm
from memory.retention import Retention
from processors.models import EventType, MemoryEvent

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
TENANT, USER = "store_001", "line:U1"


class Another(Protocol):
    """Another store over what the first one keeps, as another process has it."""

    def __call__(self, *, retention: Retention | Callable[[str], Retention] = ...) -> LongTerm: ...


def event(number: int = 0, *, event_id: str | None = "", at: datetime | None = None, **payload: Any) -> MemoryEvent:
    return MemoryEvent(
        event_type=EventType.REQUEST,
        payload={"original_message": f"ข้อความ {number}", "language": "th", **payload},
        importance_score=0.7,
        timestamp=at or NOW + timedelta(milliseconds=number),
        event_id=f"e{number}" if event_id == "" else event_id,
    )


async def ids(store: LongTerm, tenant: str = TENANT, user: str = USER) -> list[str | None]:
    memory = await store.load(tenant, user)
    return [one.event_id for one in memory.events] if memory else []


def telling(known: LongTermMemory, number: int) -> Changes:
    """The same fact, each time from another message."""
    fact = facts.new(now=NOW, key="color", value="blue", source=f"m{number}")
    return Changes(facts=facts.merge(known.facts, fact).changed)


class LongTermContract:
    """A backend gives the fixtures `store` and `another`; both have a clock that stands at NOW."""

    async def test_an_unknown_person_is_none(self, store: LongTerm) -> None:
        assert await store.load(TENANT, USER) is None
        assert await store.compact(TENANT, USER, NOW) == 0
        assert await store.rewrite(TENANT, USER, lambda memory: memory) is False
        assert await store.load_shared(TENANT) is None
        assert [user async for user in store.users(TENANT)] == []

    async def test_what_was_saved_comes_back(self, store: LongTerm) -> None:
        await store.save_events(TENANT, USER, [event(1)], attributes={"name": "สมชาย"}, history_summary="สรุป")
        memory = await store.load(TENANT, USER)
        assert memory is not None
        assert (memory.tenant_id, memory.user_id) == (TENANT, USER)
        assert memory.events == [event(1)]
        assert (memory.attributes, memory.history_summary) == ({"name": "สมชาย"}, "สรุป")

    async def test_a_later_save_adds_and_replaces(self, store: LongTerm) -> None:
        await store.save_events(TENANT, USER, [event(1)], attributes={"a": 1, "list": ["x"]}, history_summary="one")
        await store.save_events(TENANT, USER, [event(2)], attributes={"a": 2, "list": ["y", "x"]})
        memory = await store.load(TENANT, USER)
        assert memory is not None
        assert memory.attributes == {"a": 2, "list": ["x", "y"]}
        assert (await ids(store), memory.history_summary) == (["e1", "e2"], "one")

    async def test_an_event_is_saved_once_by_its_id(self, store: LongTerm) -> None:
        await store.save_events(TENANT, USER, [event(1), event(1)])
        await store.compact(TENANT, USER, NOW)
        await store.save_events(TENANT, USER, [event(1), event(2)])
        assert await ids(store) == ["e1", "e2"]

    async def test_events_without_an_id_are_each_their_own(self, store: LongTerm) -> None:
        await store.save_events(TENANT, USER, [event(1, event_id=None)])
        await store.save_events(TENANT, USER, [event(1, event_id=None)])
        await store.compact(TENANT, USER, NOW)
        assert await ids(store) == [None, None]

    async def test_a_summary_made_of_the_one_before_loses_nobodys_part(self, another: Another) -> None:
        stores = [another(), another()]
        await asyncio.gather(
            *(
                stores[n % 2].save_events(
                    TENANT, USER, [event(n)], history_summary=lambda known, n=n: f"{known.history_summary} {n}"
                )
                for n in range(30)
            )
        )
        memory = await stores[0].load(TENANT, USER)
        assert memory is not None
        assert sorted(memory.history_summary.split(), key=int) == [str(n) for n in range(30)]

    async def test_tenants_and_users_do_not_meet(self, store: LongTerm) -> None:
        await store.save_events(TENANT, USER, [event(1)])
        await store.save_events("store_002", USER, [event(2)])
        await store.save_events(TENANT, "line:U2", [event(3)])
        found = [await ids(store), await ids(store, "store_002"), await ids(store, TENANT, "line:U2")]
        assert found == [["e1"], ["e2"], ["e3"]]

    async def test_changing_what_was_loaded_changes_nothing_kept(self, store: LongTerm) -> None:
        await store.save_events(TENANT, USER, [event(1, tags=["a"])], attributes={"deep": {"x": [1]}})
        memory = await store.load(TENANT, USER)
        assert memory is not None
        memory.events.clear()
        memory.attributes["deep"]["x"].append(2)
        again = await store.load(TENANT, USER)
        assert again is not None
        assert (again.attributes, len(again.events)) == ({"deep": {"x": [1]}}, 1)
        with pytest.raises(TypeError):
            again.events[0].payload["language"] = "en"
        with pytest.raises(TypeError):
            again.events[0].payload["tags"].append("b")

    async def test_the_newest_thousand_stay(self, store: LongTerm, another: Another) -> None:
        await store.save_events(TENANT, USER, [event(n) for n in range(1000)])
        await store.save_events(TENANT, USER, [event(1000)])
        assert await ids(store) == [f"e{n}" for n in range(1, 1001)]
        assert await store.compact(TENANT, USER, NOW) == 1
        assert await ids(another()) == [f"e{n}" for n in range(1, 1001)]

    async def test_what_is_older_than_a_year_goes(self, store: LongTerm, another: Another) -> None:
        old, young = event(1, at=NOW - timedelta(days=364)), event(2, at=NOW - timedelta(days=362))
        await store.save_events(TENANT, USER, [event(0, at=NOW - timedelta(days=366))])
        assert await ids(store) == []
        await store.save_events(TENANT, "line:U2", [old, young])
        assert await store.compact(TENANT, "line:U2", NOW) == 0
        assert await store.compact(TENANT, "line:U2", NOW + timedelta(days=2)) == 1
        assert [await ids(one, TENANT, "line:U2") for one in (store, another())] == [["e2"], ["e2"]]

    async def test_values_that_json_has_no_form_for_are_saved_as_text(self, store: LongTerm) -> None:
        odd = event(1, big=2**80, lone="a\ud800b")
        await store.save_events(TENANT, USER, [odd], attributes={"lone": "\udfff"})
        memory = await store.load(TENANT, USER)
        assert memory is not None
        assert memory.events[0].payload["lone"] == "a�b"
        assert memory.attributes == {"lone": "�"}

    async def test_tasks_that_save_at_once_lose_nothing(self, store: LongTerm) -> None:
        await asyncio.gather(*(store.save_events(TENANT, USER, [event(n)]) for n in range(300)))
        assert sorted(await ids(store), key=str) == sorted((f"e{n}" for n in range(300)), key=str)

    async def test_a_cancelled_caller_takes_nobody_along(self, store: LongTerm) -> None:
        saves = [asyncio.ensure_future(store.save_events(TENANT, USER, [event(n)])) for n in range(10)]
        await asyncio.sleep(0)
        saves[0].cancel()
        saves[5].cancel()
        done = await asyncio.gather(*saves, return_exceptions=True)
        assert [n for n, outcome in enumerate(done) if outcome is not None] == [0, 5]
        assert {f"e{n}" for n in range(10) if n not in (0, 5)} <= set(await ids(store))

    async def test_fifty_at_once_of_the_same_fact_leave_one(self, store: LongTerm) -> None:
        await asyncio.gather(
            *(store.change(TENANT, USER, lambda known, n=n: telling(known, n)) for n in range(50))  # type: ignore[misc]
        )
        memory = await store.load(TENANT, USER)
        assert memory is not None
        assert [(fact.value, fact.times_confirmed) for fact in memory.facts] == [("blue", 49)]

    async def test_attributes_are_the_view_of_the_facts_by_key(self, store: LongTerm) -> None:
        await store.save_events(TENANT, USER, [event(1)], attributes={"city": "Bangkok"})
        await store.save_events(TENANT, USER, [event(2)], attributes={"city": "Chiang Mai"})
        memory = await store.load(TENANT, USER)
        assert memory is not None
        assert memory.attributes == {"city": "Chiang Mai"}
        assert [(fact.value, fact.current, fact.source) for fact in memory.facts] == [
            ("Bangkok", False, "e1"),
            ("Chiang Mai", True, "e2"),
        ]

    async def test_users_are_named_as_they_were_given(self, store: LongTerm) -> None:
        odd = [
            "line:U1",
            "../../etc/passwd",
            ".hidden",
            "_tenant",
            "ก" * 300,
            "a/b\x00c",
            "x.json",
            "x%2F",
            "' OR 1=1 --",
        ]
        for user in odd:
            await store.save_events(TENANT, user, [event(1)])
        assert sorted([user async for user in store.users(TENANT)]) == sorted(odd)
        assert [user async for user in store.users("store_009")] == []
        assert [await ids(store, TENANT, user) for user in odd] == [["e1"]] * len(odd)

    async def test_what_can_be_no_key_is_refused(self, store: LongTerm) -> None:
        for tenant in ("", "../x", "Store", "a/b", "x" * 65, "a'b"):
            with pytest.raises(InvalidId):
                await store.save_events(tenant, USER, [event(1)])
        with pytest.raises(InvalidId):
            await store.load(TENANT, "")
        with pytest.raises(InvalidId):
            await store.forget(TENANT, "")

    async def test_any_text_comes_back_as_it_was(self, store: LongTerm, another: Another) -> None:
        text = "\x00 \x01 \\ ' \" % \u2028 กำ 👩‍👩‍👧 \r\n"
        odd = event(1, event_id=f"m{text}", original_message=text, deep={text: [text, None, 1.5, True]})
        fact = facts.new(now=NOW, key="note", value=text, source=text)
        changes = Changes(events=[odd], facts=[fact], history_summary=text, person=new_person(USER, NOW, "a"))
        await store.change(TENANT, USER, lambda _: changes)
        for one in (store, another()):
            memory = await one.load(TENANT, USER)
            assert memory is not None
            assert (memory.events, memory.facts, memory.history_summary) == ([odd], [fact], text)

    async def test_the_next_save_by_another_is_seen_at_once(self, store: LongTerm, another: Another) -> None:
        other = another()
        for number in range(0, 6, 2):
            await store.save_events(TENANT, USER, [event(number)], attributes={"a": number})
            await other.save_events(TENANT, USER, [event(number + 1)], history_summary=str(number))
            assert await ids(store) == await ids(other) == [f"e{n}" for n in range(number + 2)]
        await other.rewrite(TENANT, USER, lambda memory: memory.model_copy(update={"events": memory.events[1:]}))
        assert await ids(store) == [f"e{n}" for n in range(1, 6)]
        await other.forget(TENANT, USER)
        assert await store.load(TENANT, USER) is None
        await other.save_events(TENANT, USER, [event(9)])
        assert await ids(store) == ["e9"]

    async def test_what_adds_nothing_leaves_no_trace(self, store: LongTerm) -> None:
        await store.change(TENANT, USER, lambda _: Changes())
        await store.save_events(TENANT, USER, [])
        assert await store.load(TENANT, USER) is None
        assert [user async for user in store.users(TENANT)] == []

    async def test_each_tenant_may_have_its_own_rules(self, another: Another) -> None:
        few = Retention(max_events=2)
        store = another(retention=lambda tenant: few if tenant == "store_002" else Retention())
        for tenant in (TENANT, "store_002"):
            await store.save_events(tenant, USER, [event(n) for n in range(4)])
        assert [len(await ids(store)), await ids(store, "store_002")] == [4, ["e2", "e3"]]

    async def test_retention_over_everybody_counts_what_went(self, store: LongTerm) -> None:
        for number, user in enumerate(("line:U1", "line:U2", "ก" * 300)):
            old = event(number, at=NOW - timedelta(days=364))
            await store.save_events(TENANT, user, [old, event(10 + number)])
        assert await store.expire(TENANT, NOW) == 0
        assert await store.expire(TENANT, NOW + timedelta(days=2)) == 3
        assert await store.expire(TENANT, NOW + timedelta(days=2)) == 0
        assert [await ids(store, TENANT, user) for user in ("line:U1", "ก" * 300)] == [["e10"], ["e12"]]

    async def test_who_may_have_faded_facts_is_among_those_to_be_looked_at(self, store: LongTerm) -> None:
        fact = facts.new(now=NOW, key="color", value="blue")
        await store.change(TENANT, USER, lambda _: Changes(facts=[fact]))
        later = NOW + timedelta(days=3650)
        assert decay.faded([fact], later) == [fact]
        assert [user async for user in store.fading(TENANT, later)] == [USER]

    async def test_an_event_is_replaced_and_removed_by_a_rewrite(self, store: LongTerm, another: Another) -> None:
        await store.save_events(TENANT, USER, [event(n, event_id=None if n == 1 else f"e{n}") for n in range(4)])
        said = event(2, text="corrected")

        def corrected(memory: LongTermMemory) -> LongTermMemory:
            kept = [said if one.event_id == "e2" else one for one in memory.events if one.event_id != "e3"]
            return memory.model_copy(update={"events": kept})

        assert await store.rewrite(TENANT, USER, corrected) is True
        assert await store.rewrite(TENANT, USER, corrected) is False
        for one in (store, another()):
            memory = await one.load(TENANT, USER)
            assert memory is not None
            assert [found.event_id for found in memory.events] == ["e0", None, "e2"]
            assert memory.events[2] == said

    async def test_two_people_are_rewritten_in_one_step_or_not_at_all(self, store: LongTerm, another: Another) -> None:
        await store.save_events(TENANT, "line:A", [event(1)], attributes={"a": 1})
        await store.save_events(TENANT, "telegram:1", [event(2)], attributes={"b": 2})
        with pytest.raises(ValueError, match="merged"):
            await store.rewrite_both(TENANT, "line:A", "line:A2", _refuses)
        assert [user async for user in store.users(TENANT)] == ["line:A", "telegram:1"]

        def both(here: LongTermMemory, there: LongTermMemory) -> tuple[LongTermMemory, LongTermMemory]:
            return identities.merged(here, there, NOW), identities.moved(there, here.user_id, NOW)

        await store.rewrite_both(TENANT, "line:A", "telegram:1", both)
        for one in (store, another()):
            here, there = await one.load(TENANT, "line:A"), await one.load(TENANT, "telegram:1")
            assert here is not None
            assert there is not None
            assert (here.attributes, [found.event_id for found in here.events]) == ({"a": 1, "b": 2}, ["e1", "e2"])
            assert there.person is not None
            assert (there.person.merged_into, there.events, there.facts) == ("line:A", [], [])

    async def test_everything_comes_back(self, store: LongTerm, another: Another) -> None:
        said = [{"role": "user", "message": "สวัสดี", "timestamp": "2026-03-01T09:00:00Z"}]
        episode = episodes.made_of("s1", NOW, said)  # type: ignore[arg-type]
        rated = episode.model_copy(update={"feedback": episodes.Feedback(rating=5, comment="ดี", at=NOW)})
        person = new_person(USER, NOW, "พลอย")
        fact = facts.new(now=NOW, key="city", value="เชียงใหม่", source="m1")
        await store.change(TENANT, USER, lambda _: Changes(events=[event(1)], facts=[fact], episodes=[episode]))
        await store.change(TENANT, USER, lambda _: Changes(episodes=[rated], person=person, history_summary="สรุป"))
        for one in (store, another()):
            memory = await one.load(TENANT, USER)
            assert memory is not None
            assert (memory.facts, memory.episodes, memory.person) == ([fact], [rated], person)
            assert (memory.events, memory.attributes) == ([event(1)], {"city": "เชียงใหม่"})
            assert memory.history_summary == "สรุป"

    async def test_the_tenants_own_is_nobodys_and_each_tenants_alone(self, store: LongTerm, another: Another) -> None:
        fact = facts.new(now=NOW, key="wifi", value="1234", scope="global")
        rule = procedures.new("ask for the postcode", {"intent": "delivery"}, NOW)
        await store.change_shared(TENANT, lambda _: Changes(facts=[fact], procedures=[rule]))
        shared = await another().load_shared(TENANT)
        assert shared is not None
        assert (shared.facts, shared.procedures, shared.attributes, shared.user_id) == ([fact], [rule], {}, "")
        assert await store.load_shared("store_002") is None
        assert [user async for user in store.users(TENANT)] == []
        await store.rewrite_shared(TENANT, lambda memory: memory.model_copy(update={"facts": []}))
        shared = await store.load_shared(TENANT)
        assert shared is not None
        assert (shared.facts, shared.procedures) == ([], [rule])

    async def test_forget_removes_the_person_and_says_what(self, store: LongTerm, another: Another) -> None:
        await store.save_events(TENANT, USER, [event(1), event(2)], attributes={"name": "x"})
        await store.save_events(TENANT, "line:U2", [event(3)])
        receipt = await store.forget(TENANT, USER)
        assert {name: receipt[name] for name in ("events", "attributes", "facts", "episodes")} == {
            "events": 2, "attributes": 1, "facts": 1, "episodes": 0,
        }  # fmt: skip
        assert await another().load(TENANT, USER) is None
        assert [user async for user in store.users(TENANT)] == ["line:U2"]
        assert set((await store.forget(TENANT, USER)).values()) == {0}

    async def test_the_first_that_is_known_reads_the_same_here_and_elsewhere(
        self, store: LongTerm, another: Another
    ) -> None:
        cat = facts.new(now=NOW, key="pet", value={"kind": ["cat"]}, text="has a cat", owner=USER)

        def first(memory: LongTermMemory) -> Changes:
            assert memory.events == []
            known = [event(1), event(2)]
            return Changes(known, [cat], person=new_person(USER, NOW, "Ann"), history_summary="asked twice")

        await store.change(TENANT, USER, first)
        here, there = await store.load(TENANT, USER), await another().load(TENANT, USER)
        assert here is not None
        assert [one.event_id for one in here.events] == [event(1).event_id, event(2).event_id]
        assert here == there

    async def test_whoever_writes_sees_when_the_person_was_forgotten(self, store: LongTerm, another: Another) -> None:
        seen: list[datetime | None] = []

        def look(memory: LongTermMemory) -> Changes:
            seen.append(store.forgotten_at(TENANT, USER))
            return Changes()

        await store.change(TENANT, USER, look)
        await another().mark_forgotten(TENANT, USER)
        await store.change(TENANT, USER, look)
        assert seen == [None, NOW]
        assert not store.never_forgotten(TENANT, USER)
        assert await asyncio.to_thread(store.forgotten_at, TENANT, USER) == NOW
        assert await asyncio.to_thread(store.forgotten_at, TENANT, "line:U2") is None
        assert await asyncio.to_thread(store.forgotten_at, "store_002", USER) is None

    async def test_tenants_are_named_once_something_is_kept(self, store: LongTerm) -> None:
        assert await store.tenants() == []
        await store.save_events("store_002", USER, [event(1)])
        await store.change_shared(
            TENANT, lambda _: Changes(facts=[facts.new(now=NOW, key="a", value=1, scope="global")])
        )
        assert await store.tenants() == ["store_001", "store_002"]


def _refuses(*memories: LongTermMemory) -> tuple[LongTermMemory, LongTermMemory]:
    raise ValueError("they can't be merged")
