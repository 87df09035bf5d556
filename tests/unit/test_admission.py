"""A flood of one tenant's webhooks is taken at a pace, where others write as well."""

from __future__ import annotations

from gateway.admission import A_SECOND, AT_ONCE, LONGEST, Admission


class Clock:
    """Stands still; notes for how long it was slept."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


async def test_a_tenant_that_is_alone_never_waits() -> None:
    clock = Clock()
    admission = Admission(clock, clock.sleep)
    for _ in range(1000):
        await admission.admitted("loud")
    assert clock.slept == []


async def test_beside_others_what_is_over_the_share_waits_ever_longer_up_to_a_bound_and_the_others_do_not() -> None:
    clock = Clock()
    admission = Admission(clock, clock.sleep)
    await admission.admitted("quiet")
    for _ in range(int(AT_ONCE)):
        await admission.admitted("loud")
    assert clock.slept == []
    for _ in range(100):
        await admission.admitted("loud")
    first, last = clock.slept[0], clock.slept[-1]
    assert (round(first, 6), last, clock.slept) == (1 / A_SECOND, LONGEST, sorted(clock.slept))
    await admission.admitted("quiet")
    assert len(clock.slept) == 100


async def test_a_flood_that_is_over_is_forgotten_within_seconds() -> None:
    clock = Clock()
    admission = Admission(clock, clock.sleep)
    await admission.admitted("quiet")
    for _ in range(5000):
        await admission.admitted("loud")
    waited = len(clock.slept)
    clock.now += AT_ONCE / A_SECOND + LONGEST
    await admission.admitted("quiet")
    await admission.admitted("loud")
    assert len(clock.slept) == waited


async def test_who_would_have_to_wait_is_told_and_not_counted() -> None:
    clock = Clock()
    admission = Admission(clock, clock.sleep)
    admission.counted("quiet")
    may = []
    for _ in range(int(AT_ONCE)):
        may += [admission.at_once("loud"), admission.at_once("loud")]
        admission.counted("loud")
    assert (set(may), admission.at_once("loud"), admission.at_once("quiet")) == ({True}, False, True)
    await admission.admitted("loud")
    assert (round(clock.slept[0], 6), admission.at_once("quiet")) == (1 / A_SECOND, True)
