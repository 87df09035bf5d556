"""LINE's SDK below its models: its HTTP client, and answers as plain JSON. `LineSender.warm` imports this, without the
SDK's models and the functions that check calls against them, which take 0.7 s of CPU and 35 MB."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import aiohttp
from linebot.__about__ import __version__
from linebot.v3.messaging.async_rest import RESTClientObject
from linebot.v3.messaging.configuration import Configuration
from linebot.v3.messaging.exceptions import ApiException

from gateway.adapters.parsing import Object, load_json
from gateway.errors import NotJson

__all__ = ["ApiException", "Client"]


class Answered(NamedTuple):
    """`data`: the object in the answer, None where it holds none."""

    raw_data: str
    data: Object | None


class _Over(RESTClientObject):  # type: ignore[misc]
    """The SDK's client over a session of ours. Its own reads all the certificates there are, as aiohttp has done."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.pool_manager = session
        self.proxy = self.proxy_headers = None


class Client:
    """Serves all channels of a process: each call brings its own token. Over `session`, or else one of the SDK's with
    so many `connections`, which looks for proxies and .netrc anew at each request."""

    def __init__(self, host: str, connections: int, session: aiohttp.ClientSession | None = None) -> None:
        self._host = host
        configuration = Configuration(host=host)
        configuration.connection_pool_maxsize = connections
        self.rest_client = _Over(session) if session else RESTClientObject(configuration)

    def headers(self, authorization: str) -> dict[str, str]:
        return {
            "Accept": "application/json",
            "Content-Type": "application/json",
            "User-Agent": f"line-bot-sdk-python/{__version__}",
            "Authorization": authorization,
        }

    async def asked(
        self,
        verb: str,
        path: str,
        body: dict[str, Any] | None = None,
        *,
        _request_auth: dict[str, str],
        _request_timeout: aiohttp.ClientTimeout,
        _headers: Mapping[str, str] = MappingProxyType({}),
    ) -> Answered:
        """Raises the SDK's ApiException and aiohttp's errors."""
        headers = {**self.headers(_request_auth["value"]), **_headers}
        answer = await self.rest_client.request(
            verb, self._host + path, headers=headers, body=body, _request_timeout=_request_timeout
        )
        raw = answer.data.decode("utf-8", "replace")
        try:
            data = load_json(raw)
        except NotJson:
            data = None
        return Answered(raw, data if isinstance(data, dict) else None)

    async def close(self) -> None:
        await self.rest_client.close()
