"""The API over memory, row by row, as an admin's page and another program use it."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memory.episodes import made_of
from memory.keys import ConversationRef
from memory.models import Changes
from processors.models import EventType, MemoryEvent
from tests.api_side import ADMIN_KEY, SHOP_KEY, Api, api_side

ANN, BEE = "line:U1", "telegram:2"
MEMORY, NOW = "/api/v1/memory", datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def api(tmp_path: Path, redis_url: str, clock: Clock) -> AsyncIterator[Api]:
    async with api_side(tmp_path, redis_url, clock=clock, timezone="Asia/Bangkok") as side:
        yield side


def event(name: str, kind: str = "INQUIRY", score: float = 0.8, *, at: datetime = NOW, text: str = "") -> MemoryEvent:
    payload = {"original_message": text or f"said {name}", "language": "en"}
    return MemoryEvent(event_type=EventType(kind), payload=payload, importance_score=score, event_id=name, timestamp=at)


async def known(api: Api, clock: Clock) -> dict[str, str]:
    """Three facts of Ann, one of Bee, one of the shop itself, one of another shop; their ids by key."""
    ids = {}
    for number, (tenant, user, more) in enumerate(
        [
            ("shop", ANN, {"text": "ชอบกาแฟเย็น", "key": "drink", "type": "preference"}),
            ("shop", ANN, {"key": "shoe_size", "value": "38", "confidence": 0.6}),
            ("shop", ANN, {"key": "report", "value": "Q4", "type": "context"}),
            ("shop", BEE, {"key": "city", "value": "Chiang Mai", "confidence": 0.9}),
            ("shop", ANN, {"key": "parking", "value": "behind the house", "scope": "global"}),
            ("other", ANN, {"key": "secret", "value": "of another shop"}),
        ]
    ):
        clock.now = NOW + timedelta(seconds=number)
        ids[str(more["key"])] = (await api.manager.remember(tenant, user, **more)).id  # type: ignore[arg-type]
    return ids


async def keys_of(api: Api, path: str) -> list[str]:
    return [one["key"] for one in (await api.get(path))["items"]]


async def ids_of(api: Api, path: str) -> list[str]:
    return [one["id"] for one in (await api.get(path))["items"]]


class TestMemory:
    """What seed tables call `/api/v1/memory`."""

    async def test_get_memory_lists_all_paginated_and_filterable(self, api: Api, clock: Clock) -> None:
        await known(api, clock)
        page = await api.get(f"{MEMORY}?limit=2")
        assert [one["key"] for one in page["items"]] == ["parking", "city"]
        assert page["total"] == 5
        rest = await api.get(f"{MEMORY}?limit=200&cursor={page['next_cursor']}")
        assert ([one["key"] for one in rest["items"]], rest["next_cursor"]) == (
            ["report", "shoe_size", "drink"],
            None,
        )
        filtered = {
            "type=preference": ["drink"],
            "type=user_preference": ["drink"],
            "type=fact&type=context": ["parking", "city", "report", "shoe_size"],
            "priority=low": ["report"],
            "scope=global": ["parking"],
            "scope=user": ["city", "report", "shoe_size", "drink"],
            f"user={ANN}": ["report", "shoe_size", "drink"],
            "user=line:nobody": [],
            "q=กาแฟ": ["drink"],
            "q=SHOE SIZE": ["shoe_size"],
            "q=chiang": ["city"],
            "q=100%25": [],
            "sort=confidence&scope=user&type=fact": ["city", "shoe_size"],
        }
        assert {asked: await keys_of(api, f"{MEMORY}?{asked}") for asked in filtered} == filtered

    async def test_pages_stay_stable_while_things_change(self, api: Api, clock: Clock) -> None:
        await known(api, clock)
        first = await api.get(f"{MEMORY}?limit=2")
        seen = [one["key"] for one in first["items"]]
        clock.now += timedelta(minutes=1)
        await api.manager.remember("shop", BEE, key="new", value="since")
        await api.ask("DELETE", f"{MEMORY}/{first['items'][0]['id']}")
        seen += [one["key"] for one in (await api.get(f"{MEMORY}?cursor={first['next_cursor']}"))["items"]]
        assert seen == ["parking", "city", "report", "shoe_size", "drink"]

    async def test_get_memory_stats(self, api: Api, clock: Clock) -> None:
        await known(api, clock)
        assert await api.get(f"{MEMORY}/stats") == {
            "total": 5,
            "by_type": {"context": 1, "fact": 3, "preference": 1},
            "by_priority": {"high": 3, "low": 1, "medium": 1},
            "by_scope": {"global": 1, "user": 4},
        }
        of_bee = await api.get(f"{MEMORY}/stats?user={BEE}")
        assert (of_bee["total"], of_bee["by_type"]) == (1, {"fact": 1})

    async def test_get_memory_export_is_all_of_it_as_json(self, api: Api, clock: Clock) -> None:
        await known(api, clock)
        await api.manager.remember("shop", ANN, key="drink", value="tea")
        await api.manager.teach("shop", "when a customer asks for delivery, ask for the postcode first")
        export = await api.get(f"{MEMORY}/export")
        assert export["tenant_id"] == "shop"
        told = sorted((one["key"], one["user_id"], one.get("superseded_by") is None) for one in export["items"])
        assert told == [
            ("city", BEE, True),
            ("drink", ANN, False),
            ("drink", ANN, True),
            ("parking", None, True),
            ("report", ANN, True),
            ("shoe_size", ANN, True),
        ]
        assert [one["content"] for one in export["procedures"]] == ["ask for the postcode first"]
        only = await api.get(f"{MEMORY}/export?user={BEE}")
        assert ([one["key"] for one in only["items"]], only["procedures"]) == (["city"], [])

    async def test_get_memory_id_gives_one(self, api: Api, clock: Clock) -> None:
        ids = await known(api, clock)
        status, one, headers = await api.ask_whole("GET", f"{MEMORY}/{ids['drink']}")
        assert (status, one["text"], one["content"], one["user_id"]) == (200, "ชอบกาแฟเย็น", "ชอบกาแฟเย็น", ANN)
        assert (one["type"], one["fact_type"], one["created_at"]) == (
            "preference",
            "user_preference",
            "2026-03-01T09:00:00Z",
        )
        assert headers["ETag"].startswith('"')
        for path in (f"{MEMORY}/{ids['secret']}", f"{MEMORY}/nothing", f"{MEMORY}/{'x' * 500}"):
            assert (await api.ask("GET", path))[0] == 404

    async def test_patch_memory_id_updates_content_or_priority(self, api: Api, clock: Clock) -> None:
        ids = await known(api, clock)
        path = f"{MEMORY}/{ids['shoe_size']}"
        status, one = await api.ask("PATCH", path, json={"text": "shoe size: 39"})
        assert (status, one["value"], one["priority"]) == (200, "39", "high")
        status, one = await api.ask("PATCH", path, json={"priority": "low"})
        assert (status, one["text"], one["priority"]) == (200, "shoe size: 39", "low")
        status, one = await api.ask("PATCH", f"{MEMORY}/{ids['drink']}", json={"content": "ชอบชาเย็น"})
        assert (status, one["text"], one["value"]) == (200, "ชอบชาเย็น", "ชอบชาเย็น")
        memory = await api.manager.longterm.load("shop", ANN)
        assert memory is not None
        assert memory.attributes == {"drink": "ชอบชาเย็น", "shoe_size": "39", "report": "Q4"}
        assert await api.texts(f"{MEMORY}?q=ชา") == ["ชอบชาเย็น"]
        assert (await api.ask("PATCH", f"{MEMORY}/{ids['parking']}", json={"text": "in the yard"}))[0] == 200
        assert await api.texts(f"{MEMORY}?scope=global") == ["in the yard"]
        assert (await api.ask("PATCH", f"{MEMORY}/{ids['secret']}", json={"priority": "low"}))[0] == 404

    async def test_patch_with_an_outdated_if_match_changes_nothing(self, api: Api, clock: Clock) -> None:
        ids = await known(api, clock)
        path = f"{MEMORY}/{ids['shoe_size']}"
        _, _, headers = await api.ask_whole("GET", path)
        first = {"If-Match": headers["ETag"]}
        status, _, after = await api.ask_whole("PATCH", path, json={"text": "shoe size: 40"}, headers=first)
        assert status == 200
        for tag in (headers["ETag"], f"W/{after['ETag']}", '"x"'):
            status, problem = await api.ask("PATCH", path, json={"text": "41"}, headers={"If-Match": tag})
            assert (status, problem["title"]) == (412, "Precondition Failed")
        assert (await api.get(path))["text"] == "shoe size: 40"
        for tag in ("*", f'"x", {after["ETag"]}'):
            assert (await api.ask("PATCH", path, json={"priority": "low"}, headers={"If-Match": tag}))[0] in (200, 412)
        assert (await api.get(path))["priority"] == "low"

    async def test_delete_memory_id_deletes_one(self, api: Api, clock: Clock) -> None:
        ids = await known(api, clock)
        assert await api.ask("DELETE", f"{MEMORY}/{ids['drink']}") == (200, {"deleted": 1})
        assert (await api.ask("DELETE", f"{MEMORY}/{ids['drink']}"))[0] == 404
        assert (await api.ask("DELETE", f"{MEMORY}/{ids['secret']}"))[0] == 404
        assert (await api.get(f"{MEMORY}/stats"))["total"] == 4

    async def test_delete_memory_with_confirm_true_clears_all(self, api: Api, clock: Clock) -> None:
        await known(api, clock)
        for asked in ("", "?confirm=false"):
            assert (await api.ask("DELETE", f"{MEMORY}{asked}"))[0] == 400
        assert await api.ask("DELETE", f"{MEMORY}?confirm=true&user={ANN}") == (200, {"deleted": 3})
        assert await api.texts(MEMORY) == ["parking: behind the house", "city: Chiang Mai"]
        assert await api.ask("DELETE", f"{MEMORY}?confirm=true") == (200, {"deleted": 2})
        assert (await api.get(f"{MEMORY}/stats"))["total"] == 0
        assert await api.ask("GET", f"{MEMORY}/stats?tenant=other", key=ADMIN_KEY) == (
            200,
            {"total": 1, "by_type": {"fact": 1}, "by_priority": {"high": 1}, "by_scope": {"user": 1}},
        )

    async def test_a_trailing_slash_is_accepted(self, api: Api, clock: Clock) -> None:
        await known(api, clock)
        totals = [(await api.get(f"/api/v1/{name}/"))["total"] for name in ("memory", "facts", "memory-users")]
        assert totals == [5, 5, 2]

    async def test_what_holds_in_a_session_alone_is_listed_mended_and_deleted(self, api: Api, clock: Clock) -> None:
        for key in ("mood", "table"):
            await api.manager.remember("shop", ANN, key=key, value="good", scope="session")
            clock.now += timedelta(seconds=1)
        page = await api.get(f"{MEMORY}?scope=session&limit=1")
        rest = await api.get(f"{MEMORY}?scope=session&cursor={page['next_cursor']}")
        assert [one["key"] for one in (*page["items"], *rest["items"])] == ["table", "mood"]
        assert (page["total"], (await api.get(MEMORY))["total"]) == (2, 0)
        mood = f"{MEMORY}/{rest['items'][0]['id']}"
        assert (await api.ask("PATCH", mood, json={"text": "mood: bad"}))[1]["value"] == "bad"
        assert await api.manager.recall("shop", ANN, key="mood") == "mood = bad"
        assert await api.ask("DELETE", mood) == (200, {"deleted": 1})
        assert await api.ask("DELETE", f"{MEMORY}?confirm=true") == (200, {"deleted": 1})
        assert (await api.get(f"{MEMORY}?scope=session"))["total"] == 0


class TestDeletedMeansDeleted:
    async def test_no_copy_of_it_is_left_anywhere(self, api: Api, clock: Clock, tmp_path: Path) -> None:
        """File, journal, archive, live session, index, and what came along with a merged id."""
        word = "pineapple"
        await api.manager.remember("shop", BEE, key="fruit", value=word)
        clock.now += timedelta(seconds=1)
        await api.manager.remember("shop", ANN, key="fruit", value=word)
        await api.manager.merge_users("shop", BEE, ANN)
        await api.manager.get_or_create_session_context("shop", ANN)
        fact = (await api.get(f"{MEMORY}?q={word}"))["items"][0]
        memory = await api.manager.longterm.load("shop", ANN)
        assert memory is not None
        await api.manager.archive.add("shop", ANN, [one for one in memory.facts if one.id == fact["id"]], clock.now)
        assert await api.ask("DELETE", f"{MEMORY}/{fact['id']}") == (200, {"deleted": 1})
        holding = [
            path.relative_to(tmp_path).as_posix()
            for path in tmp_path.rglob("*")
            if path.is_file() and word.encode() in path.read_bytes()
        ]
        session = await api.manager.sessions.load(ConversationRef("shop", ANN))
        assert session is not None
        assert (holding, word in session.model_dump_json()) == ([], False)

    async def test_what_it_had_taken_the_place_of_goes_too(self, api: Api, clock: Clock) -> None:
        for value in ("M", "L", "XL"):
            clock.now += timedelta(seconds=1)
            await api.manager.remember("shop", ANN, key="size", value=value)
        assert (await api.get(f"{MEMORY}?superseded=true"))["total"] == 3
        (one,) = (await api.get(MEMORY))["items"]
        assert await api.ask("DELETE", f"{MEMORY}/{one['id']}") == (200, {"deleted": 1})
        assert (await api.get(f"{MEMORY}?superseded=true"))["total"] == 0

    async def test_it_does_not_come_back_when_its_session_ends(self, api: Api, clock: Clock) -> None:
        said = "I am allergic to peanuts"
        await api.manager.add_message_to_context("shop", ANN, said, metadata={"message_id": "m1"})
        (one,) = (await api.get(f"{MEMORY}?q=peanuts"))["items"]
        assert await api.ask("DELETE", f"{MEMORY}/{one['id']}") == (200, {"deleted": 1})
        await api.manager.add_message_to_context("shop", ANN, "what do you have today?", metadata={"message_id": "m2"})
        clock.now += timedelta(hours=1)
        assert await api.manager.cleanup_expired_sessions("shop") == 1
        assert (await api.get("/api/v1/episodes"))["total"] == 1
        assert (await api.get(f"{MEMORY}?q=peanuts"))["total"] == 0
        await api.manager.add_message_to_context("shop", ANN, said, metadata={"message_id": "m3"})
        assert (await api.get(f"{MEMORY}?q=peanuts"))["total"] == 1  # said again, it is known again

    async def test_a_forgotten_person_leaves_the_lists_at_once(self, api: Api, clock: Clock, tmp_path: Path) -> None:
        await known(api, clock)
        await api.get(MEMORY)
        await api.manager.forget("shop", BEE)
        assert b"Chiang Mai" not in b"".join(path.read_bytes() for path in (tmp_path / "data" / "index").iterdir())
        assert (await api.get("/api/v1/memory-users"))["total"] == 1

    async def test_a_message_taken_back_leaves_the_lists_at_once(self, api: Api, tmp_path: Path) -> None:
        metadata = {"message_id": "m1", "platform_id": "p1"}
        await api.manager.add_message_to_context("shop", ANN, "my address is 9 Elm Road", metadata=metadata)
        await api.get(MEMORY)
        await api.manager.retract(ConversationRef("shop", ANN), "p1")
        assert b"Elm Road" not in b"".join(path.read_bytes() for path in (tmp_path / "data" / "index").iterdir())

    async def test_two_people_with_a_record_of_one_id_are_told_apart(self, api: Api) -> None:
        folder = api.settings.data_dir / "longterm" / "shop"
        folder.mkdir(parents=True)
        fact = {"id": "f_1", "key": "size", "value": "M", "text": "size: M", "created_at": "2026-03-01T09:00:00Z"}
        for user in (ANN, BEE):
            facts = [{**fact, "last_used_at": fact["created_at"]}]
            (folder / f"{user}.json").write_text(json.dumps({"tenant_id": "shop", "user_id": user, "facts": facts}))
        for method, more in (("GET", {}), ("PATCH", {"json": {"priority": "low"}}), ("DELETE", {})):
            assert (await api.ask(method, f"{MEMORY}/f_1", **more))[0] == 409
        assert (await api.ask("POST", "/api/v1/facts/batch-delete", json={"ids": ["f_1"]}))[0] == 409
        assert await api.ask("DELETE", f"{MEMORY}/f_1?user={BEE}") == (200, {"deleted": 1})
        assert [one["user_id"] for one in (await api.get(MEMORY))["items"]] == [ANN]


class TestKnowledge:
    """What seed tables call `/api/v1/facts` and so on."""

    async def test_get_facts_lists_them_the_surest_first(self, api: Api, clock: Clock) -> None:
        await known(api, clock)
        found = (await api.get("/api/v1/facts/"))["items"]
        assert [one["confidence"] for one in found] == [1.0, 1.0, 1.0, 0.9, 0.6]
        asked = "/api/v1/facts?type=world_knowledge&min_confidence=0.7"
        assert {(one["key"], one["fact_type"]) for one in (await api.get(asked))["items"]} == {
            ("parking", "world_knowledge"),
            ("city", "world_knowledge"),
        }

    async def test_get_facts_pages_by_confidence(self, api: Api, clock: Clock) -> None:
        await known(api, clock)
        cursor, seen = "", []
        while cursor is not None:
            page = await api.get(f"/api/v1/facts?limit=2&cursor={cursor}")
            seen += [one["confidence"] for one in page["items"]]
            cursor = page["next_cursor"]
        assert seen == [1.0, 1.0, 1.0, 0.9, 0.6]

    async def test_post_facts_batch_delete(self, api: Api, clock: Clock) -> None:
        ids = await known(api, clock)
        asked = {"ids": [ids["drink"], ids["city"], ids["parking"], ids["drink"], ids["secret"], "nothing"]}
        assert await api.ask("POST", "/api/v1/facts/batch-delete/", json=asked) == (200, {"deleted": 3})
        assert await api.ask("POST", "/api/v1/facts/batch-delete", json=asked) == (200, {"deleted": 0})
        assert {one["key"] for one in (await api.get("/api/v1/facts"))["items"]} == {"shoe_size", "report"}
        assert await api.ask("GET", "/api/v1/facts?tenant=other", key=ADMIN_KEY) != (200, {"items": []})

    async def episodes(self, api: Api) -> list[str]:
        ids = []
        told = [(ANN, "where is my order"), (BEE, "ขอเปลี่ยนไซส์"), (ANN, "a refund, please")]
        for number, (user, text) in enumerate(told):
            at = NOW + timedelta(hours=number)
            said: list[Any] = [
                {"role": "user", "message": text, "message_id": f"m{number}", "timestamp": at.isoformat()},
                {"role": "bot", "message": "here you are", "timestamp": (at + timedelta(minutes=1)).isoformat()},
            ]
            episode = made_of(f"s{number}", at, said, summary=f"asked: {text}", last_intent="SUPPORT")
            await api.manager.longterm.change("shop", user, lambda _, episode=episode: Changes(episodes=[episode]))
            ids.append(episode.id)
        return ids

    async def test_get_episodes_lists_them(self, api: Api) -> None:
        ids = await self.episodes(api)
        page = await api.get("/api/v1/episodes/?limit=2")
        assert ([one["id"] for one in page["items"]], page["total"]) == ([ids[2], ids[1]], 3)
        rest = await api.get(f"/api/v1/episodes?cursor={page['next_cursor']}")
        assert [one["id"] for one in rest["items"]] == [ids[0]]
        newest = page["items"][0]
        assert (newest["user_id"], newest["outcome"]) == (ANN, "success")
        assert (newest["duration"], newest["messages"]) == (60.0, 2)
        assert newest["trigger"] == {"input": "a refund, please", "intent": "SUPPORT"}
        assert (await api.get("/api/v1/episodes?q=ไซส์"))["items"][0]["id"] == ids[1]
        assert (await api.get(f"/api/v1/episodes?user={ANN}&until=2026-03-01T10:00:00Z"))["total"] == 1
        whole = await api.get(f"/api/v1/episodes/{ids[0]}")
        assert [line["message"] for line in whole["conversation"]] == ["where is my order", "here you are"]
        assert (await api.ask("GET", "/api/v1/episodes/nothing"))[0] == 404

    async def test_post_episodes_batch_delete(self, api: Api, tmp_path: Path) -> None:
        ids = await self.episodes(api)
        asked = {"ids": [ids[0], ids[1], "nothing"]}
        assert await api.ask("POST", "/api/v1/episodes/batch-delete", json=asked) == (200, {"deleted": 2})
        assert [one["id"] for one in (await api.get("/api/v1/episodes"))["items"]] == [ids[2]]
        assert (await api.ask("GET", f"/api/v1/episodes/{ids[0]}"))[0] == 404
        assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"my order" in path.read_bytes()]

    async def test_get_procedures_lists_them(self, api: Api, clock: Clock) -> None:
        await api.manager.teach("shop", "when a customer asks for delivery, ask for the postcode first")
        clock.now += timedelta(seconds=1)
        await api.manager.teach("shop", content=["find_order"], trigger={"intent": "SUPPORT"}, type="tool_sequence")
        found = (await api.get("/api/v1/procedures/"))["items"]
        assert [(one["type"], one["trigger"]) for one in found] == [
            ("tool_sequence", {"intent": "SUPPORT"}),
            ("prompt_template", {"goal_contains": ["delivery"]}),
        ]
        assert (found[0]["times_used"], found[0]["success_rate"], found[0]["source"]) == (0, None, "human")
        await api.manager.knowledge.count("shop", [found[0]["id"]], True, 2.0, clock.now)
        (used,) = (await api.get("/api/v1/procedures?type=tool_sequence"))["items"]
        assert (used["times_used"], used["success_rate"], used["average_duration"]) == (1, 1.0, 2.0)
        assert (await api.get("/api/v1/procedures?q=postcode"))["total"] == 1

    async def test_post_procedures_batch_delete(self, api: Api) -> None:
        taught = await api.manager.teach("shop", "when a customer asks for delivery, ask for the postcode first")
        asked = {"ids": [taught.id, "nothing"]}
        assert await api.ask("POST", "/api/v1/procedures/batch-delete", json=asked) == (200, {"deleted": 1})
        assert await api.ask("POST", "/api/v1/procedures/batch-delete", json=asked) == (200, {"deleted": 0})
        assert (await api.get("/api/v1/procedures"))["total"] == 0

    async def test_get_memory_users_lists_them(self, api: Api, clock: Clock) -> None:
        await known(api, clock)
        await api.manager.identify_user("shop", BEE, display_name="Bee")
        clock.now += timedelta(seconds=1)
        await api.manager.merge_users("shop", "line:U3", ANN)
        found = {one["id"]: one for one in (await api.get("/api/v1/memory-users/"))["items"]}
        assert {name: one["merged_into"] for name, one in found.items()} == {ANN: None, BEE: None, "line:U3": ANN}
        bee = found[BEE]
        assert (bee["canonical_id"], bee["identities"], bee["display_name"]) == (BEE, {"telegram_id": "2"}, "Bee")
        assert (bee["preferences"], bee["facts"], bee["conversations"]) == ({"city": "Chiang Mai"}, 1, 0)
        assert found[ANN]["merged"] == ["line:U3"]
        assert [one["id"] for one in (await api.get("/api/v1/memory-users?q=bee"))["items"]] == [BEE]
        assert (await api.get(f"{MEMORY}?user=line:U3"))["total"] == 3  # an old id leads to the new one

    async def test_post_memory_users_batch_delete_forgets_them(self, api: Api, clock: Clock, tmp_path: Path) -> None:
        await known(api, clock)
        await api.manager.add_message_to_context("shop", BEE, "I live in Chiang Mai", metadata={"message_id": "m1"})
        asked = {"ids": [BEE, "line:nobody"]}
        assert await api.ask("POST", "/api/v1/memory-users/batch-delete", json=asked) == (200, {"deleted": 1})
        assert [one["id"] for one in (await api.get("/api/v1/memory-users"))["items"]] == [ANN]
        assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"Chiang Mai" in path.read_bytes()]
        assert await api.manager.sessions.load(ConversationRef("shop", BEE)) is None


class TestEvents:
    async def test_events_are_filtered_and_counted_a_day(self, api: Api) -> None:
        late = datetime(2026, 3, 1, 16, 59, tzinfo=UTC)  # one minute to midnight in Bangkok
        events = [
            event("a", "INQUIRY", 0.5, at=late),
            event("b", "COMPLAINT", 0.9, at=late + timedelta(minutes=2), text="มาช้ามาก"),
            event("c", "INQUIRY", 0.7, at=late + timedelta(minutes=3)),
        ]
        await api.manager.longterm.save_events("shop", ANN, events[:2])
        await api.manager.longterm.save_events("shop", BEE, events[2:])
        page = await api.get("/api/v1/events?limit=2")
        assert ([one["id"] for one in page["items"]], page["total"]) == (["c", "b"], 3)
        assert page["per_day"] == {"2026-03-01": 1, "2026-03-02": 2}
        rest = await api.get(f"/api/v1/events?cursor={page['next_cursor']}")
        assert ([one["id"] for one in rest["items"]], rest["per_day"]) == (["a"], None)
        one = page["items"][1]
        assert (one["event_type"], one["importance"], one["timestamp"]) == (
            "COMPLAINT",
            "critical",
            "2026-03-01T17:01:00Z",
        )
        filtered = {
            "type=COMPLAINT": ["b"],
            "type=COMPLAINT&type=INQUIRY": ["c", "b", "a"],
            "importance=important": ["c", "b"],
            "importance=0.8": ["b"],
            f"user={ANN}": ["b", "a"],
            "since=2026-03-01T17:01:00Z": ["c", "b"],
            "since=2026-03-02T00:01:00%2B07:00&until=2026-03-02T00:02:00%2B07:00": ["b"],
            "until=2026-03-01T17:01:00": ["a"],
            "q=ช้า": ["b"],
            "sort=importance": ["b", "c", "a"],
        }
        assert {asked: await ids_of(api, f"/api/v1/events?{asked}") for asked in filtered} == filtered

    async def test_what_an_importance_may_be_is_told_whole(self, api: Api) -> None:
        status, told = await api.ask("GET", "/api/v1/events?importance=7")
        assert status == 422
        assert told["detail"].startswith("query.importance: Input should be 'minimal', ")
        assert told["detail"].endswith(", or: Input should be less than or equal to 1")
        status, told = await api.ask("GET", "/api/v1/events?since=2026-03-02T00:01:00+07:00")
        assert (status, told["detail"].startswith("query.since: "), "%2B" in told["detail"]) == (422, True, True)
        status, told = await api.ask("GET", "/api/v1/events?since=yesterday")
        assert (status, "%2B" in told["detail"]) == (422, False)
        status, told = await api.ask("POST", "/api/v1/checkpoints/batch-delete", json={"ids": [], "user": "web:ann"})
        assert (status, told["detail"]) == (422, "body.user: Extra inputs are not permitted")

    async def test_event_stats(self, api: Api) -> None:
        await api.manager.longterm.save_events("shop", ANN, [event("a"), event("b", "SUPPORT")])
        assert await api.get("/api/v1/events/stats?type=SUPPORT&type=INQUIRY") == {
            "total": 2,
            "by_type": {"INQUIRY": 1, "SUPPORT": 1},
            "per_day": {"2026-03-01": 2},
        }


OTHER_LISTS = ("facts", "episodes", "procedures", "memory-users", "events", "events/stats")
LISTS = (MEMORY, f"{MEMORY}/stats", f"{MEMORY}/export", *(f"/api/v1/{name}" for name in OTHER_LISTS))


class TestWhoAsks:
    async def test_a_list_needs_a_key_and_a_tenant(self, api: Api) -> None:
        for path in LISTS:
            asked = [
                await api.ask("GET", f"{path}?limit=wrong", key=None),
                await api.ask("GET", path, key="another"),
                await api.ask("GET", path, key=ADMIN_KEY),
                await api.ask("GET", f"{path}?tenant=other"),
                await api.ask("GET", f"{path}?tenant=nobody", key=ADMIN_KEY),
                await api.ask("GET", f"{path}?tenant=shop", key=ADMIN_KEY),
            ]
            assert (path, [status for status, _ in asked]) == (path, [401, 401, 422, 404, 404, 200])

    async def test_another_tenants_things_are_not_found_and_stay(self, api: Api, clock: Clock) -> None:
        secret = (await known(api, clock))["secret"]
        refused = [
            await api.ask("GET", f"{MEMORY}/{secret}"),
            await api.ask("PATCH", f"{MEMORY}/{secret}", json={"priority": "low"}),
            await api.ask("DELETE", f"{MEMORY}/{secret}"),
            await api.ask("DELETE", f"{MEMORY}?confirm=true&tenant=other"),
            await api.ask("POST", "/api/v1/facts/batch-delete?tenant=other", json={"ids": [secret]}),
        ]
        assert [status for status, _ in refused] == [404] * 5
        _, left = await api.ask("GET", f"{MEMORY}?tenant=other", key=ADMIN_KEY)
        assert [one["id"] for one in left["items"]] == [secret]


class TestBadInput:
    async def test_a_wrong_question_is_a_problem(self, api: Api) -> None:
        wrong = [
            *("limit=0", "limit=201", "limit=x", "limit=9" + "9" * 400, "cursor=x", "cursor=%ff%fe", "cursor=W10"),
            *("cursor=WyJjcmVhdGVkIiwxZTMwMCwiIiwiIl0", "cursor=WyJjcmVhdGVkIixbXSwiIiwiIl0", "cursor=%00"),
            *("type=nonsense", "priority=urgent", "scope=world", "user=", "user=" + "u" * 600, "q=" + "q" * 300),
            *("sort=id", "superseded=perhaps"),
        ]
        for query in wrong:
            status, problem, headers = await api.ask_whole("GET", f"{MEMORY}?{query}")
            told = (query, status, problem["status"], headers["Content-Type"])
            assert told == (query, 422, 422, "application/problem+json")

    async def test_a_cursor_of_another_order_is_refused(self, api: Api, clock: Clock) -> None:
        await known(api, clock)
        cursor = (await api.get(f"{MEMORY}?limit=1"))["next_cursor"]
        assert (await api.ask("GET", f"/api/v1/facts?cursor={cursor}"))[0] == 422

    async def test_odd_words_find_nothing(self, api: Api, clock: Clock) -> None:
        await known(api, clock)
        odd = ("q=%ff%fe", "q=%00", "q=%25_%27%22%3B--", "q=...", "user=%ff", "user=%00", "user=a/../b")
        assert {query: await keys_of(api, f"{MEMORY}?{query}") for query in odd} == {query: [] for query in odd}

    async def test_a_wrong_body_is_a_problem(self, api: Api, clock: Clock) -> None:
        ids = await known(api, clock)
        wrong = {
            b"": 400,
            b"{": 400,
            b"\xff\xfe{": 400,
            b"[" * 100_000: 400,
            b'{"text": "\\ud800"}': 400,
            b"[]": 422,
            b"null": 422,
            b"{}": 422,
            b'{"text": ""}': 422,
            b'{"text": "  "}': 422,
            b'{"text": null}': 422,
            b'{"text": 5}': 422,
            b'{"text": ' + b"[" * 500 + b"]" * 500 + b"}": 422,
            b'{"text": "a", "content": "b"}': 422,
            b'{"text": "a", "colour": "b"}': 422,
            b'{"priority": "urgent"}': 422,
            b'{"text": "' + b"x" * 20_000 + b'"}': 422,
            b'{"text": "' + b"x" * 2_000_000 + b'"}': 413,
        }
        found = {}
        for body in wrong:
            status, problem = await api.ask("PATCH", f"{MEMORY}/{ids['city']}", data=io.BytesIO(body))
            assert problem["status"] == status
            found[body] = status
        assert found == wrong
        assert (await api.get(f"{MEMORY}/{ids['city']}"))["text"] == "city: Chiang Mai"

    async def test_a_wrong_batch_deletes_nothing(self, api: Api) -> None:
        wrong: list[Any] = [{}, {"ids": "x"}, {"ids": [5]}, {"ids": [""]}, {"ids": ["x" * 600]}, {"ids": ["x"] * 1001}]
        for name in ("facts", "episodes", "procedures", "memory-users"):
            asked = [await api.ask("POST", f"/api/v1/{name}/batch-delete", json=body) for body in wrong]
            assert (name, [status for status, _ in asked]) == (name, [422] * len(wrong))

    async def test_while_the_files_can_not_be_read_it_says_so(self, api: Api, clock: Clock) -> None:
        ids = await known(api, clock)
        await api.get(MEMORY)
        folder = api.settings.data_dir / "longterm" / "shop"
        folder.rename(folder.with_name("away"))
        folder.write_text("no folder")
        status, problem, headers = await api.ask_whole("GET", f"{MEMORY}/{ids['city']}")
        assert (status, headers["Retry-After"], str(folder) in str(problem)) == (503, "5", False)


@pytest.mark.parametrize("path", [MEMORY, "/api/v1/facts", "/api/v1/episodes", "/api/v1/memory-users", "/api/memories"])
async def test_a_filter_that_is_not_known_is_refused(api: Api, clock: Clock, path: str) -> None:
    assert (await api.ask("GET", f"{path}?usr=line:U1"))[0] == 422
    assert (await api.ask("GET", f"{path}?usr=line:U1", key=None))[0] == 401


async def test_a_misspelt_person_clears_nobody(api: Api, clock: Clock) -> None:
    await known(api, clock)
    before = (await api.get(MEMORY))["total"]
    status, problem = await api.ask("DELETE", f"{MEMORY}?confirm=true&user_id={ANN}")
    assert (status, problem["detail"][:32]) == (422, "query: 'user_id' is not known he")
    assert (await api.get(MEMORY))["total"] == before


@pytest.mark.parametrize("twice", [f"user={ANN}&user=line:U2", "confirm=true", "tenant=shop", "tenant=other"])
async def test_what_is_said_twice_clears_nobody(api: Api, clock: Clock, twice: str) -> None:
    await known(api, clock)
    before = (await api.get(MEMORY))["total"]
    status, problem = await api.ask("DELETE", f"{MEMORY}?confirm=true&tenant=shop&{twice}", key=ADMIN_KEY)
    said = "two different ones are named" if twice == "tenant=other" else "given 2 times"
    assert (status, problem["detail"].partition(",")[0].endswith(said)) == (422, True)
    assert (await api.get(MEMORY))["total"] == before


@pytest.mark.parametrize(
    ("key", "asked", "found"),
    [
        (ADMIN_KEY, "", ["other", "shop"]),
        (ADMIN_KEY, "?tenant=shop", ["shop"]),
        (ADMIN_KEY, "?tenant=nobodys", 404),
        (ADMIN_KEY, "?id=shop", 422),
        (ADMIN_KEY, "?limit=1&limit=2", 422),
        (SHOP_KEY, "", ["shop"]),
        (SHOP_KEY, "?tenant=shop", ["shop"]),
        (SHOP_KEY, "?tenant=other", 404),
    ],
)
async def test_tenants_are_those_that_were_asked_for(api: Api, key: str, asked: str, found: Any) -> None:
    status, answer = await api.ask("GET", f"/api/v1/tenants{asked}", key=key)
    assert ([one["id"] for one in answer["items"]] if status == 200 else status) == found
