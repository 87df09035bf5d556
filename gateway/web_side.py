"""What of the HTTP side speaks with people and programs over the web, put together."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from redis.asyncio import Redis

from config.settings import Settings
from config.tenants import Tenants
from gateway.assembly import Clock
from gateway.chat import Chat
from gateway.intake import Intake
from gateway.routes import chat as chat_routes
from gateway.routes import checkpoints, completions, conversations, live, page
from gateway.routes import visitors as visitor_routes
from gateway.routes.auth import Keys
from gateway.routes.chat import Callers
from gateway.routes.cors import Cors
from gateway.routes.visitors import Visitors
from gateway.web_log import LocalLog, RedisLog
from gateway.wire import Wire
from memory.memory_manager import MemoryManager


class WebSide:
    def __init__(
        self,
        settings: Settings,
        tenants: Tenants,
        client: Redis,
        manager: MemoryManager,
        intake: Intake,
        keys: Keys,
        admin_key: str,
        local: LocalLog,
        clock: Clock,
    ) -> None:
        self._tenants = tenants
        self._keys = keys
        self.wire = Wire(client)
        shown = RedisLog(client)
        self.chat = Chat(intake, manager.conversations, self.wire, shown, local, clock=clock)
        self._visitors = visitors = Visitors(admin_key, clock)
        callers = Callers(keys, visitors, tenants.get, settings.public_url)
        self.routers: list[APIRouter] = [
            chat_routes.router(self.chat, callers),
            visitor_routes.router(visitors, tenants.get, settings.public_url),
            conversations.router(manager, callers, shown, clock),
            checkpoints.router(manager, keys, clock),
            live.router(self.wire, keys),
            completions.router(self.chat, callers, keys, clock),
            page.router(self.chat, callers, manager, tenants.all, tenants.get),
        ]

    def known(self, authorization: str) -> bool:
        """Whether a key of ours, or a visitor's token, stands in it."""
        said = authorization.partition(" ")[2].strip()
        return self._keys.known(said) or self._visitors.read(said) is not None

    def around(self, application: Any) -> Any:
        return Cors(application, self._tenants.all)

    async def close(self) -> None:
        await self.chat.close()
        await self.wire.close()
