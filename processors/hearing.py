"""Speech to text, asked of the OpenAI-compatible `/audio/transcriptions` where the language model is asked. aiohttp is
imported at the first call: a process that hears nobody does without."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from processors.llm import Access, Usage, usage_of

if TYPE_CHECKING:
    import aiohttp

log = logging.getLogger(__name__)

_LONGEST = 10_000  # characters of a recording's words


_BYTES, _TOKENS = 2000, 10  # of a second of speech: rather few bytes, as voice messages have them


def seconds_of(data: bytes) -> float:
    """How long a recording is, rather too long: what LINE and Telegram send has more bytes a second."""
    return len(data) / _BYTES


def tokens_of(data: bytes) -> int:
    """What a recording is counted as where nobody tells."""
    return round(seconds_of(data) * _TOKENS)


class Hearing:
    """Shared by all tenants; the session is opened at the first call."""

    def __init__(self, timeout: aiohttp.ClientTimeout | None = None) -> None:
        self._timeout = timeout
        self._session: aiohttp.ClientSession | None = None

    async def words(
        self, data: bytes, suffix: str, model: str, access: Access, *, took: Callable[[str, Usage], None] | None = None
    ) -> str | None:
        """What is said in a recording; `suffix` tells its type (`ogg`, `m4a`). None where nobody can tell."""
        if not access.api_key:
            return None
        import aiohttp

        if self._session is None:
            timeout = self._timeout or aiohttp.ClientTimeout(total=20, connect=5)
            self._session = aiohttp.ClientSession(timeout=timeout)
        form = aiohttp.FormData()
        form.add_field("model", model)
        form.add_field("file", data, filename=f"recording.{suffix}", content_type="application/octet-stream")
        url = f"{access.base_url.rstrip('/')}/audio/transcriptions"
        try:
            headers = {"Authorization": f"Bearer {access.api_key}"}
            async with self._session.post(url, data=form, headers=headers, allow_redirects=False) as response:
                if response.status != 200:
                    log.warning("a recording is not understood: %d", response.status)
                    return None
                answer = await response.json(content_type=None)
        except (TimeoutError, aiohttp.ClientError, ValueError) as error:
            log.warning("a recording is not understood: %s", type(error).__name__)
            return None
        if took is not None:
            took(model, usage_of(answer) or Usage(prompt_tokens=tokens_of(data), seconds=seconds_of(data)))
        text = answer.get("text") if isinstance(answer, dict) else None
        return text.strip()[:_LONGEST] or None if isinstance(text, str) else None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None
