"""The scripts against the plain model: the same random arrivals, crashes, lost leases and clock jumps, same answers.

The server's clock can't be moved, so a case of the scripts is replaced: `now_ms` reads a key that the test sets. All
else is the text that production runs.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule
from redis.asyncio import Redis

from gateway.inbox.base import Claim, Claims, Outcome, Policy, SessionWrite, event_of, name_of
from gateway.inbox.in_process import InProcessInbox, State
from gateway.inbox.redis import INDEX, RedisInbox
from gateway.inbox.spread_inbox import SpreadInbox
from gateway.messages import InboundMessage
from memory.redis_client import connect

CLOCK = "test:clock"
SLOTS = ("0", *(f"sm:{tenant}:line:{user}" for tenant in ("shop", "other") for user in ("U1", "U2")))
START = 1_800_000_000_000
LEASE = 10.0


def clocked(sources: dict[str, str]) -> dict[str, str]:
    """The real scripts with the test's clock, which stands in the slot that a script is about."""
    real = "local t = redis.call('TIME')\n  return t[1] * 1000 + math.floor(t[2] / 1000)"
    slot = "string.match(KEYS[1] or ARGV[1], '{(.*)}')"
    ours = f"return tonumber(redis.call('GET', '{CLOCK}:{{' .. {slot} .. '}}'))"
    return {name: text if name == "bury" else text.replace(real, ours) for name, text in sources.items()}


class ClockedInbox(RedisInbox):
    def __init__(self, client: Redis, worker: str) -> None:
        super().__init__(client, worker, lease=LEASE)

    @staticmethod
    def _sources() -> dict[str, str]:
        return clocked(RedisInbox._sources())


class ClockedSpread(SpreadInbox):
    """One shard: with several, which conversation comes first is left to chance. Looks at it each time, and renews a
    lease before each send, as after a long wait."""

    def __init__(self, client: Redis, worker: str) -> None:
        super().__init__(client, worker, lease=LEASE, shards=1)
        self._half_lease = 0.0

    @staticmethod
    def _sources() -> dict[str, str]:
        return clocked(SpreadInbox._sources())

    async def claim(self, limit: int) -> Claims:
        self._shards.note(0, 0)
        return await super().claim(limit)


def shape(claim: Claim) -> tuple[Any, ...]:
    """A claim without its token, which each inbox makes its own way."""
    return claim.conversation, claim.attempts, claim.messages, claim.session, claim.outbox, claim.failure, claim.carried


class InboxMachine(RuleBasedStateMachine):
    url = ""
    inbox: type[RedisInbox] = ClockedInbox
    claims = Bundle("claims")

    @initialize()
    def start(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.client = connect(self.url, retries=0)
        self.loop.run_until_complete(self.client.flushdb())
        self.now = START
        self._set_clock()
        self.state = State()
        self.real = [self.inbox(self.client, str(number)) for number in range(2)]
        self.model = [
            InProcessInbox(self.state, str(number), lease=LEASE, clock=lambda: self.now / 1000) for number in range(2)
        ]
        self.number = 0
        self.accepted: dict[str, list[str]] = {}  # name it was put under → events in the order of acceptance
        self.ended: dict[str, list[str]] = {}  # the same name → events in the order in which they were done or buried
        self.sent: list[InboundMessage] = []

    def teardown(self) -> None:
        if hasattr(self, "loop"):
            self.loop.run_until_complete(self.client.aclose())
            self.loop.close()

    def _set_clock(self) -> None:
        for slot in SLOTS if self.inbox is ClockedSpread else SLOTS[:1]:
            self.loop.run_until_complete(self.client.set(f"{CLOCK}:{{{slot}}}", self.now, ex=3600))

    def both(self, worker: int, call: str, *real: Any, model: tuple[Any, ...] | None = None) -> Any:
        """The same call on both; what each answered."""
        given = real if model is None else model
        answer = self.loop.run_until_complete(getattr(self.real[worker], call)(*real))
        return answer, self.loop.run_until_complete(getattr(self.model[worker], call)(*given))

    @rule(
        some=st.lists(
            st.tuples(
                st.sampled_from(["shop", "other"]),
                st.sampled_from(["line:U1", "line:U2"]),
                st.booleans(),
                st.sampled_from([0, 800]),
                st.sampled_from([2, Policy().max_attempts]),
                st.booleans(),
            ),
            min_size=1,
            max_size=4,
        )
    )
    def arrive(self, some: list[tuple[str, str, bool, int, int, bool]]) -> None:
        """In one put, some of them twice. In which order a cluster's steps mark several is left to chance."""
        together = some[:1] if self.inbox is ClockedSpread else some
        put = [one for row in together for one in [self._message(*row[:-1])] * (1 + row[-1])]
        real, model = self.both(0, "put", put)
        assert real == model == [n == 0 or one is not put[n - 1] for n, one in enumerate(put)]

    def _message(
        self, tenant: str, user: str, command: bool, debounce: int, tries: int
    ) -> tuple[InboundMessage, Policy]:
        self.number += 1
        message = InboundMessage(
            tenant=tenant,
            channel="main",
            platform="line",
            event_id=f"e{self.number}",
            user_id=user,
            chat_id=user,
            text="/reset" if command else "hello",
        )
        self.accepted.setdefault(name_of(message), []).append(event_of(message))
        self.sent.append(message)
        return message, Policy(debounce=debounce, debounce_max=3000 if debounce else 0, max_attempts=tries)

    @rule(which=st.integers(0, 30))
    def is_delivered_again(self, which: int) -> None:
        if self.sent:
            message = self.sent[-1 - which % len(self.sent)]
            real, model = self.both(1, "put", [(message, Policy(max_attempts=2))])
            assert real == model == [False]

    @rule(target=claims, worker=st.integers(0, 1), limit=st.integers(1, 3))
    def claims_some(self, worker: int, limit: int) -> Any:
        buried_before = len(self.state.dead)
        if self.inbox is ClockedSpread:
            limit = 10  # there a lease that is over is lost to its worker when another takes it, and not before
        real, model = self.both(worker, "claim", limit)
        assert list(map(shape, real.claims)) == list(map(shape, model.claims))
        exact = self.inbox is ClockedInbox  # the other counts on from when it looked
        assert real.next_due == pytest.approx(model.next_due, abs=0 if exact else 0.5)
        for *_, message in self.state.dead[buried_before:]:
            self.ended.setdefault(name_of(message), []).append(event_of(message))
        return multiple(*((worker, ours, theirs) for ours, theirs in zip(real.claims, model.claims, strict=True)))

    @rule(claim=claims)
    def beats(self, claim: Any) -> None:
        worker, ours, theirs = claim
        real, model = self.both(worker, "beat", [ours], model=([theirs],))
        assert real == model

    @rule(claim=claims)
    def is_about_to_send(self, claim: Any) -> None:
        worker, ours, theirs = claim
        real, model = self.both(worker, "intent", ours, b"out", model=(theirs, b"out"))
        assert real == model

    @rule(claim=claims)
    def looks_behind(self, claim: Any) -> None:
        worker, ours, theirs = claim
        real, model = self.both(worker, "behind", ours, 3, model=(theirs, 3))
        assert real == model

    @rule(claim=consumes(claims), writes=st.booleans(), dies=st.booleans(), stale=st.booleans(), carries=st.booleans())
    def finishes(self, claim: Any, writes: bool, dies: bool, stale: bool, carries: bool) -> None:
        worker, ours, theirs = claim
        session = None
        if writes:
            rev = len(self.ended.get(name_of(ours.messages[0]), ())) if stale else _rev(ours.session)
            session = SessionWrite(f'{{"rev":{rev + 1}}}'.encode(), rev, 3_600_000, "[]", "1")
        dead = "poison" if dies else None
        carry = b"answer" if carries else None
        real, model = self.both(worker, "finish", ours, session, dead, carry, model=(theirs, session, dead, carry))
        assert real == model
        if real[0] is Outcome.DONE:
            for message in ours.messages:
                self.ended.setdefault(name_of(message), []).append(event_of(message))

    @rule(claim=consumes(claims))
    def belongs_to_somebody_else(self, claim: Any) -> None:
        """U1 turns out to be the person that U2 is."""
        worker, ours, theirs = claim
        to = ours.conversation.replace("U1", "U2")
        if to != ours.conversation and ours.carried is None:
            real, model = self.both(worker, "move", ours, to, model=(theirs, to))
            assert real == model

    @rule(claim=consumes(claims), pause=st.sampled_from([0.0, 2.0, 30.0]), counted=st.booleans())
    def fails(self, claim: Any, pause: float, counted: bool) -> None:
        worker, ours, theirs = claim
        for inbox, one in ((self.real[worker], ours), (self.model[worker], theirs)):
            answer = self.loop.run_until_complete(inbox.fail(one, pause, counted=counted, why="why"))
            if one is ours:
                real = answer
        assert real == answer

    @rule(claim=consumes(claims), pause=st.sampled_from([2.0, 30.0]))
    def waits_for_the_customer(self, claim: Any, pause: float) -> None:
        worker, ours, theirs = claim
        real, model = self.both(worker, "park", ours, b"parked", pause, model=(theirs, b"parked", pause))
        assert real == model

    @rule(
        tenant=st.sampled_from(["shop", "other"]),
        user=st.sampled_from(["line:U1", "line:U2"]),
        whole=st.booleans(),
        odd=st.booleans(),
    )
    def somebody_is_forgotten(self, tenant: str, user: str, whole: bool, odd: bool) -> None:
        """All of theirs, or every other message, as of a group's member."""

        def goes(message: InboundMessage) -> bool:
            return message.user_id == user and (whole or int(message.event_id[1:]) % 2 == odd)

        before = self._waiting()
        real, model = self.both(0, "forget", tenant, goes)
        assert real == model
        left = self._waiting()
        gone = {name: [one for one in events if one not in left.get(name, [])] for name, events in before.items()}
        assert sum(map(len, gone.values())) == real
        for name, events in gone.items():
            self.accepted[name] = [one for one in self.accepted[name] if one not in events]

    @rule(seconds=st.sampled_from([0.1, 1.0, 4.0, 11.0, 40.0]), away=st.booleans())
    def time_goes_on(self, seconds: float, away: bool) -> None:
        """`away`: the server was, else workers looked all along, and found nothing to do."""
        self.now += int(seconds * 1000)
        self._set_clock()
        if not away and self.state.looked is not None:
            self.state.looked = self.now
            self.loop.run_until_complete(self.client.set(f"{INDEX}:looked", self.now))

    @rule(seconds=st.sampled_from([0.5, 5.0]))
    def the_clock_jumps_back(self, seconds: float) -> None:
        self.now -= int(seconds * 1000)
        self._set_clock()

    @invariant()
    def nothing_is_lost_doubled_or_out_of_order(self) -> None:
        if not hasattr(self, "accepted"):
            return
        waiting = self._waiting()
        for put_as, events in self.accepted.items():
            assert self.ended.get(put_as, []) + waiting.get(put_as, []) == events

    def _waiting(self) -> dict[str, list[str]]:
        """The events that stand in queues, in order, by the name they were put under."""
        waiting: dict[str, list[str]] = {}
        for queue in (one.queue for one in self.state.conversations.values()):
            for message in queue:
                waiting.setdefault(name_of(message), []).append(event_of(message))
        return waiting

    @invariant()
    def what_waits_is_marked_exactly_once(self) -> None:
        if not hasattr(self, "state"):
            return
        depth = self.loop.run_until_complete(self.real[0].depth())
        model = self.loop.run_until_complete(self.model[0].depth())
        assert (depth.ready, depth.due, depth.leased, depth.dead) == (model.ready, model.due, model.leased, model.dead)
        assert model.ready + model.due + model.leased == len(self.state.conversations)


def _rev(session: bytes | None) -> int:
    return int(session.split(b":")[1].rstrip(b"}")) if session else 0


@pytest.mark.parametrize(
    ("inbox", "server", "examples"),
    [(ClockedInbox, "redis_url", 60), (ClockedSpread, "redis_url", 6), (ClockedSpread, "cluster_url", 2)],
)
def test_the_scripts_do_what_the_model_does(
    request: pytest.FixtureRequest, inbox: type[RedisInbox], server: str, examples: int
) -> None:
    machine = type("Machine", (InboxMachine,), {"url": request.getfixturevalue(server), "inbox": inbox})
    case = machine.TestCase
    spread = inbox is ClockedSpread
    case.settings = settings(
        max_examples=examples,
        stateful_step_count=40,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        derandomize=spread,  # the same few each time
        phases=[Phase.generate] if spread else list(Phase),
    )
    case().runTest()


@pytest.mark.parametrize("kind", [ClockedInbox, ClockedSpread])
async def test_who_held_something_when_the_server_was_away_has_time_for_a_heartbeat_once(
    redis_url: str, kind: type[RedisInbox]
) -> None:
    client = connect(redis_url, retries=0)
    holder, other = kind(client, "1"), kind(client, "2")

    async def after(seconds: float) -> tuple[Claim, ...]:
        """What the other one is given then, without a look of anybody in between."""
        nonlocal now
        now += int(seconds * 1000)
        for slot in SLOTS:
            await client.set(f"{CLOCK}:{{{slot}}}", now, ex=3600)
        return (await other.claim(1)).claims

    now = START
    await after(0.0)
    message = InboundMessage(
        tenant="shop", channel="main", platform="line", event_id="e1", user_id="line:U1", chat_id="U1", text="hello"
    )
    await holder.put([(message, Policy())])
    (claim,) = (await holder.claim(1)).claims
    assert await after(LEASE + 1) == ()
    assert await after(4.0) == ()
    assert await holder.beat([claim]) == set()
    assert await after(LEASE - 1) == ()  # it has a whole lease again, and is spared again
    assert await after(LEASE + 1) != ()  # but not a second time
    assert await holder.beat([claim]) == {claim.conversation}
    await client.aclose()
