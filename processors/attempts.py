"""Trying a call again, and knowing when not to: retries in a deadline, a circuit breaker for each key and address."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any, TypeVar

import tenacity

from processors.breaker import Breaker
from processors.llm import (
    Access,
    LLMError,
    LLMNotConfigured,
    LLMOutOfCredit,
    LLMUnauthorized,
    LLMUnavailable,
)
from processors.openrouter_errors import from_http

T = TypeVar("T")
Call = Callable[[float, Access, dict[str, Any]], Awaitable[T]]  # the first: its deadline

_ATTEMPTS = 4
_KEY_PAUSE = 300.0  # seconds that a refused key is left alone: it won't mend itself
_CREDIT_PAUSE = 60.0
_LONG = 20.0
_LONGEST = 3600.0  # as an endpoint wishes: one odd header (milliseconds, a far date) must not silence it for good


class _Open(LLMUnavailable):
    """The circuit breaker is open: nothing was sent."""


class Attempts:
    """One instance a client. `clock` and `sleep` are asyncio's and time's, or a test's."""

    def __init__(
        self,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
        threshold: int,
        pause: float,
    ) -> None:
        self._clock, self._sleep = clock, sleep
        self._threshold, self._pause = threshold, pause
        self._breakers: dict[tuple[str, str], Breaker] = {}

    async def retried(self, deadline: float, call: Call[T], access: Access, body: dict[str, Any]) -> T:
        """Tries again what may pass, as long as the wait (Retry-After, else growing with jitter) fits the deadline."""
        try:
            return await call(deadline, access, body)  # as nearly always: what tries again costs as much as the call
        except _Open:
            raise
        except LLMUnavailable as error:
            failed: list[LLMUnavailable] = [error]

        async def further(access: Access, body: dict[str, Any]) -> T:
            if failed:
                raise failed.pop()
            return await call(deadline, access, body)

        backoff = tenacity.wait_random_exponential(multiplier=0.5, max=8)

        def wait(state: tenacity.RetryCallState) -> float:
            error = state.outcome.exception() if state.outcome else None
            told = error.retry_after if isinstance(error, LLMError) else None
            return told + 0.05 if told is not None else backoff(state)

        def stop(state: tenacity.RetryCallState) -> bool:
            return state.attempt_number >= _ATTEMPTS or self._clock() + state.upcoming_sleep >= deadline

        retrying = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception(lambda e: isinstance(e, LLMUnavailable) and not isinstance(e, _Open)),
            wait=wait,
            stop=stop,
            sleep=self._sleep,
            reraise=True,
        )
        return await retrying(further, access, body)

    def allowed(self, access: Access) -> Breaker:
        """The breaker, to be told by who calls now how that went: `succeeded`, or `failed` here."""
        breaker = self.breaker(access)
        if (left := breaker.refused_for()) is not None:
            raise _Open(f"the language model is left alone for now: {breaker.reason}", left)
        return breaker

    def failed(self, breaker: Breaker, error: BaseException) -> BaseException:
        """The error as it leaves: whatever the HTTP client raised as LLMError."""
        told = from_http(error) if isinstance(error, _http_errors()) else error
        _hears(breaker, told)
        return told

    def breaker(self, access: Access) -> Breaker:
        if not access.api_key:
            raise LLMNotConfigured("no API key is set")
        name = access.base_url, access.api_key
        if (found := self._breakers.get(name)) is None:
            found = self._breakers[name] = Breaker(self._clock, threshold=self._threshold, pause=self._pause)
        return found


def _hears(breaker: Breaker, error: BaseException) -> None:
    match error:
        case LLMUnavailable():
            # A long Retry-After is the endpoint's own wish to be left alone.
            pause = min(error.retry_after, _LONGEST) if error.retry_after and error.retry_after > _LONG else None
            breaker.failed(str(error), at_once_for=pause)
        case LLMUnauthorized():
            breaker.failed(str(error), at_once_for=_KEY_PAUSE)
        case LLMOutOfCredit():
            breaker.failed(str(error), at_once_for=_CREDIT_PAUSE)
        case LLMError():
            breaker.succeeded()  # it answered: it is there
        case _:
            breaker.gave_up()


@cache
def _http_errors() -> tuple[type[Exception], ...]:
    """What can come out of the HTTP client and what is under it. ValueError: JSON and Unicode errors in a stream."""
    import aiohttp

    return (aiohttp.ClientError, OSError, ValueError)
