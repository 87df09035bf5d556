"""What is on record of an answer, from its first byte to the end of its turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace
from redis.exceptions import RedisError

from config.tenants import Tenant
from gateway.adapters.base import Call, Sent
from gateway.channel_states import ChannelStates
from gateway.errors import InboxUnavailable, SendRetry, TokenSpent
from gateway.inbox.base import Claim, Policy
from gateway.inbox.in_process import InProcessInbox, State
from gateway.messages import Answer, InboundMessage, Target, target_of
from gateway.outbox import ClaimLost, Courier, Outbox, decode
from gateway.pacing import Limit

MESSAGE = InboundMessage(
    tenant="shop", channel="main", platform="telegram", event_id="e1", user_id="telegram:1", chat_id="1", text="hello"
)
SHOP = Tenant.model_validate({"id": "shop", "name": "Shop", "channels": {}})


class Platform:
    """Takes every call; `then` is what happens right after."""

    platform = "telegram"

    def __init__(self, then: Callable[[], None] = lambda: None) -> None:
        self.took: list[Call] = []
        self.then = then

    async def send(self, tenant: Tenant, target: Target, call: Call) -> Sent:
        self.took.append(call)
        self.then()
        return Sent(())


class Away(InProcessInbox):
    """An inbox that can't be reached for so many tries after something was sent, and lets calls pass only as told."""

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self.tries_away = 0
        self.waits: list[float] = []

    async def intent(self, claim: Claim, outbox: bytes, limits: Sequence[Limit] = ()) -> float | None:
        if self.tries_away:
            self.tries_away -= 1
            raise InboxUnavailable("away")
        if limits and self.waits and (wait := self.waits.pop(0)):
            return wait
        return await super().intent(claim, outbox)


async def claimed(inbox: InProcessInbox) -> Claim:
    await inbox.put([(MESSAGE, Policy())])
    (claim,) = (await inbox.claim(1)).claims
    return claim


def on_record(inbox: InProcessInbox, claim: Claim) -> tuple[int, bool]:
    """The first call that is not known to be delivered, and whether it may have been made."""
    raw = inbox.state.conversations[claim.conversation].outbox
    assert raw is not None
    return decode(raw).next, decode(raw).flying


def an_outbox(calls: int) -> Outbox:
    made = [Call("sendMessage", {"chat_id": "1", "text": str(number)}) for number in range(calls)]
    return Outbox(target_of(MESSAGE), Answer("hi"), made)


def courier(inbox: InProcessInbox, platform: Platform, **more: Any) -> Courier:
    states: Any = ChannelStates(None)  # type: ignore[arg-type]  # nothing goes wrong with the channel
    return Courier(inbox, {"telegram": platform}, states, **more)  # type: ignore[dict-item]


async def test_that_a_call_was_taken_is_on_record_before_anything_else_is_done() -> None:
    inbox = Away(State())
    claim = await claimed(inbox)
    seen = []

    class Ledger:
        async def sent(self, *_: Any) -> None:
            seen.append(on_record(inbox, claim))

    platform = Platform(lambda: seen.append(on_record(inbox, claim)))
    assert await courier(inbox, platform, ledger=Ledger()).deliver(claim, SHOP, an_outbox(2)) is None
    assert seen == [(0, True), (1, False), (1, True), (2, False)]


@pytest.mark.parametrize(("age", "recorded"), [(1.0, False), (30.0, True)])
async def test_that_a_reply_was_taken_its_token_tells_as_long_as_it_lives(age: float, recorded: bool) -> None:
    inbox, platform = Away(State()), Platform()
    claim = await claimed(inbox)
    target = replace(target_of(MESSAGE), reply_token="t", token_received_at=1000.0)
    ours = courier(inbox, platform, clock=lambda: 1000.0 + age)
    outbox = Outbox(target, Answer("hi"), [Call("reply", {"replyToken": "t"})])
    assert await ours.deliver(claim, SHOP, outbox) is None
    assert on_record(inbox, claim) == ((1, False) if recorded else (0, True))

    def spent() -> None:
        raise TokenSpent("Invalid reply token")

    platform.then = spent
    inbox.state.leases[claim.conversation] = 0  # this worker ends here
    (again,) = (await inbox.claim(1)).claims
    assert again.outbox is not None
    left = decode(again.outbox)
    assert await ours.deliver(again, SHOP, left) is None
    assert (left.over, left.delivered, len(platform.took)) == (True, 1, 1 if recorded else 2)


async def test_an_answer_that_has_to_wait_in_its_middle_goes_on_with_what_was_not_sent() -> None:
    inbox, platform = Away(State()), Platform()
    claim = await claimed(inbox)
    inbox.waits = [0.0, 60.0]
    with pytest.raises(SendRetry):
        await courier(inbox, platform).deliver(claim, SHOP, an_outbox(2))
    assert on_record(inbox, claim) == (1, False)
    await inbox.fail(claim, 0.0, counted=False)
    (again,) = (await inbox.claim(1)).claims
    assert again.outbox is not None
    await courier(inbox, platform).deliver(again, SHOP, decode(again.outbox))
    assert [call.body["text"] for call in platform.took] == ["0", "1"]


async def test_what_was_taken_while_the_inbox_is_away_is_recorded_when_it_is_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gateway.outbox.RECORD_EVERY", 0.0)
    inbox = Away(State())
    claim = await claimed(inbox)

    def goes_away() -> None:
        inbox.tries_away = 5

    platform = Platform(goes_away)
    assert await courier(inbox, platform).deliver(claim, SHOP, an_outbox(1)) is None
    assert (on_record(inbox, claim), len(platform.took)) == ((1, False), 1)


async def test_nothing_is_sent_while_the_inbox_is_away() -> None:
    inbox, platform = Away(State()), Platform()
    claim = await claimed(inbox)
    inbox.tries_away = 1
    with pytest.raises(InboxUnavailable):
        await courier(inbox, platform).deliver(claim, SHOP, an_outbox(1))
    assert platform.took == []


async def test_who_lost_the_claim_meanwhile_keeps_nothing_in_mind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.outbox.RECORD_EVERY", 0.0)
    inbox = Away(State())
    claim = await claimed(inbox)

    def goes_away() -> None:
        inbox.tries_away = 2
        inbox.state.conversations[claim.conversation].holder = "somebody else"

    with pytest.raises(ClaimLost):
        async with asyncio.timeout(60):
            await courier(inbox, Platform(goes_away)).deliver(claim, SHOP, an_outbox(1))


class Noting(Away):
    """An inbox that takes notes, whose answers come when they are let."""

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self.noted: list[asyncio.Future[list[Any]]] = []

    def note(self, claim: Claim, outbox: bytes) -> asyncio.Future[list[Any]]:  # type: ignore[override]
        self.noted.append(asyncio.get_running_loop().create_future())
        return self.noted[-1]


@pytest.mark.parametrize("heard", [[0], [-1], [RedisError("no")], ConnectionError("gone")])
async def test_that_the_last_call_was_taken_is_waited_for_only_where_the_turn_does_not_come_to_its_end(
    heard: list[Any] | Exception,
) -> None:
    inbox, platform, notes = Noting(State()), Platform(), []
    claim, ours, outbox = await claimed(inbox), courier(inbox, platform), an_outbox(2)
    assert await ours.deliver(claim, SHOP, outbox, notes) is None
    assert on_record(inbox, claim) == (1, True)  # that of the first call stands there: the second was to wait for it
    assert (notes, outbox.delivered) == (inbox.noted, 2)
    settling = asyncio.create_task(ours.settle(claim, outbox, notes))
    await asyncio.sleep(0)
    assert not settling.done()
    if isinstance(heard, Exception):
        inbox.noted[0].set_exception(heard)
    else:
        inbox.noted[0].set_result(heard)
    await settling
    assert on_record(inbox, claim) == ((1, True) if heard == [0] else (2, False))
    assert notes == []
