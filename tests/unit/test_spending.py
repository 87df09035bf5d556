"""What asking the language model costs, by tenant and purpose."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import fakeredis

from config.tenants import Tenant
from gateway.spending import Month, Spending, months
from processors.llm import Access, Usage

NOW = datetime(2026, 11, 28, tzinfo=UTC)


def clock() -> datetime:
    return NOW


def nobody(tenant: str) -> None:
    """Whose file is gone: their month is UTC's."""


def answered(spending: Spending, tenant: str, purpose: str, cost: float | None = 0.0005) -> None:
    spending.used(Access("test-key", tenant=tenant, purpose=purpose), "some/model", Usage(100, 20, 0, cost))


async def test_calls_tokens_and_dollars_are_kept_apart_by_tenant_and_purpose() -> None:
    spending = Spending(nobody, clock)
    answered(spending, "one", "answer")
    answered(spending, "one", "answer", 0.000001)
    answered(spending, "one", "classify", None)
    answered(spending, "two", "remember")
    answered(spending, "", "answer")
    for way in ("llm", "rules", "rules", "rules"):
        spending.understood("one", way)
    async with fakeredis.FakeAsyncRedis() as client:
        pipe = client.pipeline(transaction=False)
        spending.into(pipe)
        await pipe.execute()
        found = await months(client, ["one", "two", "three"], nobody, clock)
    assert found["one"] == Month(
        calls={"answer": 2, "classify": 1},
        prompt_tokens={"answer": 200, "classify": 100},
        completion_tokens={"answer": 40, "classify": 20},
        dollars={"answer": 0.000501},
        understood={"llm": 1, "rules": 3},
    )
    assert found["one"].a_message == {"calls": 0.75, "tokens": 90.0, "dollars": 0.00012525}
    assert found["two"].calls == {"remember": 1}
    assert found["three"] == Month()
    assert found["three"].a_message == {"calls": 0.0, "tokens": 0.0, "dollars": 0.0}


async def test_what_could_not_be_written_is_written_with_the_next_heartbeat() -> None:
    spending = Spending(nobody, clock)
    answered(spending, "one", "answer")
    async with fakeredis.FakeAsyncRedis() as client:
        uncounted = spending.into(client.pipeline(transaction=False))
        answered(spending, "one", "answer")
        uncounted()
        for _ in range(2):  # the second time there is nothing left to write
            pipe = client.pipeline(transaction=False)
            spending.into(pipe)
            await pipe.execute()
        assert (await months(client, ["one"], nobody, clock))["one"].calls == {"answer": 2}


async def test_a_month_begins_and_ends_where_the_shop_is() -> None:
    """As its budget's does, beside which it is shown: in Bangkok November begins at 17:00 UTC."""
    zones = {"bkk": Tenant(id="bkk", name="Shop", channels={}, timezone="Asia/Bangkok")}
    at = [datetime(2026, 10, 31, 16, 59, tzinfo=UTC)]
    spending = Spending(zones.get, lambda: at[-1])
    async with fakeredis.FakeAsyncRedis() as client:
        found = []
        for _ in range(2):
            answered(spending, "bkk", "answer")
            answered(spending, "gone", "answer")
            pipe = client.pipeline(transaction=False)
            spending.into(pipe)
            await pipe.execute()
            seen = await months(client, ["bkk", "gone"], zones.get, lambda: at[-1])
            found.append((seen["bkk"].calls["answer"], seen["gone"].calls["answer"]))
            at.append(at[-1] + timedelta(minutes=1))
    assert found == [(1, 1), (1, 2)]
