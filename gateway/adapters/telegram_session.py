"""aiogram's HTTP session, shared by all bots of a process. `telegram_loading` imports this module, without the rest of
aiogram.

aiogram's own reading of answers is passed by: it refuses a whole answer for one value that it does not know, and hides
the HTTP status of what is no JSON. Here the status decides, and results stay as Telegram sent them. Its forms are
passed by as well, over its session's connections: making one costs more than the rest of a call.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple, cast

import aiohttp
from aiogram.__meta__ import __version__
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.exceptions import TelegramNetworkError
from aiogram.methods.base import Response, TelegramMethod
from aiogram.utils.token import TokenValidationError, validate_token
from aiohttp.http import SERVER_SOFTWARE

from gateway.adapters.telegram_outcome import result_of
from gateway.errors import ChannelBroken, SendAmbiguous, SendRetry
from processors.posts import REDIRECTS, Posts, encoded, head_of

_CONNECTIONS = 100
_KEPT_HEADS = 1000
_HEADERS = {"Content-Type": "application/json", "User-Agent": f"{SERVER_SOFTWARE} aiogram/{__version__}"}


class _Bot(NamedTuple):
    """What the session asks of a bot."""

    token: str


class _Session(AiohttpSession):
    def check_response(self, bot: Any, method: TelegramMethod[Any], status_code: int, content: str) -> Response[Any]:
        return Response[Any].model_construct(ok=True, result=result_of(status_code, content))


@cache
def _method(name: str) -> type[TelegramMethod[Any]]:
    """The Bot API's method of that name, with any arguments."""
    return type(name, (TelegramMethod[Any],), {"__returning__": Any, "__api_method__": name, "__module__": __name__})


class Bots:
    """Calls of any bot over one session. Made and used inside one event loop."""

    def __init__(self, base: str) -> None:
        self._session = _Session(api=TelegramAPIServer.from_base(base), limit=_CONNECTIONS)
        self._base = base
        self._posts: Posts | None = None
        self._heads: dict[tuple[str, str], bytes] = {}  # of requests, by token and method

    async def call(self, token: str, name: str, arguments: dict[str, Any], timeout: aiohttp.ClientTimeout) -> Any:
        """The method's result. Raises SendFault; its text never holds the token, which is part of the address."""
        try:
            head = self._heads.get((token, name)) or self._head(token, name)
            if self._posts is None:
                self._posts = Posts(await self._session.create_session(), self._base)
            body = encoded({key: value for key, value in arguments.items() if value})  # aiogram leaves out the same
            posted = await self._posts.post(head, body, timeout)
            if posted.status in REDIRECTS:
                return await self._by_aiogram(token, name, arguments, timeout)
            return result_of(posted.status, posted.body.decode("utf-8"))
        except TokenValidationError:
            raise ChannelBroken("The bot token has not the form of one.") from None
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise SendRetry(f"Telegram can't be reached ({type(error).__name__}).") from None
        except (aiohttp.ClientError, TimeoutError) as error:
            raise SendAmbiguous(f"No answer from Telegram ({type(error).__name__}).") from None
        except UnicodeDecodeError:
            raise SendAmbiguous("Telegram's answer can't be read.") from None

    def _head(self, token: str, name: str) -> bytes:
        """Raises TokenValidationError."""
        validate_token(token)
        head = head_of(self._session.api.api_url(token, name), _HEADERS)
        if len(self._heads) >= _KEPT_HEADS:
            self._heads.clear()
        self._heads[token, name] = head
        return head

    async def _by_aiogram(
        self, token: str, name: str, arguments: dict[str, Any], timeout: aiohttp.ClientTimeout
    ) -> Any:
        method = _method(name)(**arguments)
        try:
            # The timeout is handed on to aiohttp, which takes more than the number that aiogram's types name.
            return await self._session.make_request(cast("Any", _Bot(token)), method, cast("Any", timeout))
        except TelegramNetworkError as error:
            raise error.__cause__ or error from None

    async def close(self) -> None:
        if self._posts is not None:
            self._posts.close()
        await self._session.close()
