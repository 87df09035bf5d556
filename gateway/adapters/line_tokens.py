"""Which access token a LINE channel speaks with: its own, or one that is made with its id and secret, lives a quarter
of an hour and is made anew before it ends."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass

import aiohttp

from config.tenants import LineChannel
from gateway.errors import ChannelBroken, SendRetry

EARLY = 60.0  # seconds before its end in which a token is replaced
_TIMEOUT = aiohttp.ClientTimeout(total=10, connect=5)


@dataclass(frozen=True, slots=True)
class _Made:
    token: str
    until: float  # monotonic


class LineTokens:
    """Shared by all channels of a process; tokens live in memory only."""

    def __init__(self, host: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._host = host
        self._clock = clock
        self._made: dict[str, _Made] = {}
        self._refused: set[str] = set()
        self._making = asyncio.Lock()

    async def of(self, channel: LineChannel) -> str:
        """Raises ChannelBroken when LINE refuses id and secret; SendRetry when it does not answer."""
        own = channel.channel_access_token
        if own is not None and not (self._refused and _digest(own.get_secret_value()) in self._refused):
            return own.get_secret_value()
        if channel.channel_id is None:
            assert own is not None
            return own.get_secret_value()
        name = _digest(f"{channel.channel_id} {channel.channel_secret.get_secret_value()}")
        async with self._making:
            made = self._made.get(name)
            if made is None or made.until - EARLY <= self._clock():
                made = self._made[name] = await self._make(channel, channel.channel_id)
            return made.token

    def refused(self, channel: LineChannel, token: str) -> bool:
        """LINE says that a token is no good: it is not used again where another can be made. True: it can."""
        if channel.channel_id is None:
            return False
        if (own := channel.channel_access_token) is not None and own.get_secret_value() == token:
            self._refused.add(_digest(token))
            return True
        fitting = [name for name, made in self._made.items() if made.token == token]
        for name in fitting:
            del self._made[name]
        return bool(fitting)

    async def _make(self, channel: LineChannel, channel_id: str) -> _Made:
        form = {
            "grant_type": "client_credentials",
            "client_id": channel_id,
            "client_secret": channel.channel_secret.get_secret_value(),
        }
        asked = self._clock()
        try:
            async with (
                aiohttp.ClientSession(timeout=_TIMEOUT, trust_env=True) as http,
                http.post(f"{self._host}/oauth2/v3/token", data=form, allow_redirects=False) as response,
            ):
                if response.status in (400, 401, 403):
                    raise ChannelBroken("LINE refuses the channel's id and secret: no access token can be made.")
                if response.status != 200:
                    raise SendRetry(f"LINE made no access token (answered {response.status}).")
                said = await response.json(content_type=None)
                return _Made(str(said["access_token"]), asked + float(said["expires_in"]))
        except (aiohttp.ClientError, TimeoutError) as error:
            raise SendRetry(f"LINE made no access token ({type(error).__name__}).") from None
        except (ValueError, KeyError, TypeError):
            raise SendRetry("LINE made no access token that can be read.") from None


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
