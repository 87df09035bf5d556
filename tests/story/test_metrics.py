"""What an operator sees of a house at work, and that the dashboard and the alerts ask for nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path

import aiohttp
import yaml
from fakeredis import FakeAsyncRedis
from prometheus_client import CollectorRegistry, generate_latest

from gateway.inbox.redis import RedisInbox
from gateway.queue_gauges import QueueGauges
from gateway.timings import TimingHistograms, Timings
from memory.redis_client import connect
from tests.house import LLM_KEY, house

MONITORING = Path(__file__).parents[2] / "docs" / "monitoring"
WORDS = "rhubarb marmalade"


async def test_a_turn_is_seen_and_every_name_that_is_asked_for_is_there(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, llm_key=LLM_KEY) as home, aiohttp.ClientSession() as http:
        await home.line_says("U" + "a" * 32, f"Do you have {WORDS}?")
        await home.quiet()

        async def page() -> str:
            async with http.get(f"{home.url}/metrics") as answer:
                return await answer.text()

        def told(text: str) -> bool:
            return "chatchat_turn_seconds_count{" in text and 'operation="said_append"' in text

        seen = await home.until(page, told, patience=60)
        page_of = {line.split(" ")[0]: float(line.split(" ")[-1]) for line in seen.splitlines() if line[0] != "#"}
        turn = 'channel="line-main",result="done",tenant="shop",tries="first"'
        assert page_of[f"chatchat_turn_seconds_count{{{turn}}}"] == 1
        assert page_of[f'chatchat_turn_seconds_bucket{{channel="line-main",le="+Inf",{turn.split(",", 1)[1]}}}'] == 1
        assert page_of['chatchat_send_seconds_count{platform="line",result="ok"}'] == 1
        assert page_of['chatchat_llm_seconds_count{result="ok"}'] >= 1
        assert page_of['chatchat_waited_seconds_count{tenant="shop"}'] == 1
        stores = 'operation="{}",result="ok",store="{}"'
        for operation, store in (
            ("put", "redis"),
            ("finish", "redis"),
            ("said_tail", "files"),
            ("said_append", "files"),
        ):
            assert page_of[f"chatchat_store_seconds_count{{{stores.format(operation, store)}}}"] >= 1
        assert page_of['chatchat_tenant_files{state="ok"}'] == 1
        assert (page_of["chatchat_workers"], page_of["chatchat_dead_letters"]) == (1, 0)
        assert page_of["chatchat_oldest_ready_seconds"] == 0
        assert "rhubarb" not in seen
        assert "U" + "a" * 32 not in seen
        known = {name.removesuffix("_total") for name in re.findall(r"^# TYPE (\w+)", seen, re.MULTILINE)}
        asked = set(re.findall(r"chatchat_\w+", (MONITORING / "alerts.yml").read_text("utf-8")))
        asked |= set(re.findall(r"chatchat_\w+", (MONITORING / "grafana.json").read_text("utf-8")))
        assert {re.sub(r"_(total|bucket|sum|count)$", "", name) for name in asked} - known == set()


def test_the_alerts_and_the_dashboard_are_of_the_form_that_is_loaded() -> None:
    (group,) = yaml.safe_load((MONITORING / "alerts.yml").read_text("utf-8"))["groups"]
    for rule in group["rules"]:
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        assert set(rule["annotations"]) == {"summary", "description"}
        assert rule["expr"].count("(") == rule["expr"].count(")")
        assert re.fullmatch(r"\d+[smh]", rule.get("for", "1m"))
    assert len({rule["alert"] for rule in group["rules"]}) == len(group["rules"])
    dashboard = json.loads((MONITORING / "grafana.json").read_text("utf-8"))
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in dashboard["panels"]]
    assert len(set(places)) == len({panel["id"] for panel in dashboard["panels"]}) == len(places)
    for panel in dashboard["panels"]:
        assert [target["expr"].count("(") - target["expr"].count(")") for target in panel["targets"]] == [0] * len(
            panel["targets"]
        )


async def test_while_redis_is_away_the_page_says_so(tmp_path: Path) -> None:
    registry = CollectorRegistry()
    client = connect(f"unix://{tmp_path}/nowhere.sock", retries=0)
    inbox = RedisInbox(client, "test")
    queue = QueueGauges(registry, inbox, client, list)
    timings = TimingHistograms(registry, client)
    await queue.measure()
    await timings.measure()
    assert b"chatchat_redis_up 0.0" in generate_latest(registry)
    await inbox.close()


async def test_what_could_not_be_written_is_counted_with_the_next_heartbeat() -> None:
    client = FakeAsyncRedis()
    timings, lost, kept = Timings(), client.pipeline(), client.pipeline()
    timings.took("send_seconds", 0.3, "line", "ok")
    back = timings.into(lost)
    timings.took("send_seconds", 500.0, "line", "ok")
    back()
    timings.into(kept)
    await kept.execute()
    found = {field: float(number) for field, number in (await client.hgetall("cc:timings")).items()}
    assert found == {
        b'["send_seconds",2,"line","ok"]': 1,
        b'["send_seconds",11,"line","ok"]': 1,
        b'["send_seconds",-1,"line","ok"]': 500.3,
    }
    assert 0 < await client.ttl("cc:timings") <= 40 * 86_400
    timings.took("send_seconds", 0.3, "line", "ok")
    timings.into(kept)
    await kept.execute()
    assert await client.hget("cc:timings", '["send_seconds",2,"line","ok"]') == b"2"
    timings.into(kept)
    assert len(kept) == 0  # nothing was counted
