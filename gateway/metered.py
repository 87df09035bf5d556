"""Vectors and speech on a tenant's account: they keep to its limits, and stand in what it spent."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from gateway.budgets import Budgets
from processors.embeddings import RemoteEmbeddings, Took
from processors.hearing import Hearing, seconds_of, tokens_of
from processors.llm import Access, LLMError, LLMOverBudget, LLMUnavailable, Usage

log = logging.getLogger(__name__)

Used = Callable[[Access, str, Usage], None]  # as Spending.used
_BYTES = 3  # of text a token, rather too few


class MeteredEmbeddings:
    """Those that are asked over the network, for one tenant. Over its limit there are none: what is looked for is found
    by words."""

    def __init__(self, embeddings: RemoteEmbeddings, access: Access, budgets: Budgets, used: Used | None) -> None:
        self._embeddings = embeddings
        self._access = access
        self._budgets = budgets
        self._used = used
        self.name, self.floor = embeddings.name, embeddings.floor
        self.trust, self.remote = embeddings.trust, embeddings.remote

    async def encode(self, texts: Sequence[str], *, question: bool = False) -> Any:
        size = sum(len(text.encode("utf-8", "replace")) // _BYTES + 1 for text in texts)
        try:
            async with _paid(self._budgets, self._access, self._used, size) as took:
                return await self._embeddings.encode(texts, question=question, took=took)
        except LLMOverBudget as error:
            raise LLMUnavailable(str(error)) from None

    async def close(self) -> None:
        """The others are closed by whoever made them."""


class MeteredHearing(Hearing):
    """Over a tenant's limit a recording is kept, and not understood."""

    def __init__(self, budgets: Budgets, used: Used | None) -> None:
        super().__init__()
        self._budgets = budgets
        self._used = used

    async def words(
        self, data: bytes, suffix: str, model: str, access: Access, *, took: Took | None = None
    ) -> str | None:
        account = Access(access.api_key, access.base_url, model, tenant=access.tenant, purpose="hear")
        try:
            async with _paid(self._budgets, account, self._used, tokens_of(data), seconds_of(data)) as counted:
                return await super().words(data, suffix, model, access, took=counted)
        except LLMError as error:
            log.warning("a recording is not understood: %s", error, extra={"tenant": access.tenant})
            return None


@asynccontextmanager
async def _paid(
    budgets: Budgets, access: Access, used: Used | None, tokens: int, seconds: float = 0.0
) -> AsyncIterator[Took]:
    """Around one call; what it took is told to what is yielded. Raises LLMOverBudget, LLMUnavailable."""
    hold = await budgets.set_aside(access, tokens, seconds=seconds)

    def took(model: str, usage: Usage) -> None:
        if used is not None:
            used(access, model, usage)
        if hold is not None:
            hold.used.append((model, usage))

    failed = True
    try:
        yield took
        failed = False
    finally:
        if hold is not None:
            # A recording that nobody understood is no exception, and cost nothing unless something was told.
            budgets.settle(hold, failed=failed or (access.purpose == "hear" and not hold.used))
