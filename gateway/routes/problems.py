"""Errors as RFC 9457 problem documents."""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Match

from gateway.http_limits import for_openai
from memory.errors import Ambiguous, Changed, MemoryFault
from memory.keys import InvalidId


def problem(status: int, detail: str, headers: dict[str, str] | None = None, **more: Any) -> JSONResponse:
    content = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail} | more
    return JSONResponse(content, status, headers, media_type="application/problem+json")


class Problem(BaseModel):
    """An error as RFC 9457 has it; `detail` says what to do about it."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str


_ZONE_WITH_BLANK = re.compile(r"T[\d:.]+ \d\d:?\d\d\Z")
_UNESCAPED = "; in an address a + is written %2B, as it stands there for a blank"
_KIND = re.compile(r"(?:str|int|float|bool|constrained-\w+|[a-z-]+\[.*\])")

_SCHEMA = Problem.model_json_schema()


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What OpenAPI says of a route's errors."""
    return {
        status: {
            "description": HTTPStatus(status).phrase,
            "content": {
                "application/problem+json": {
                    "schema": dict(_SCHEMA),
                    "example": {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status}
                    | {"detail": "What was wrong, and what to do about it"},
                }
            },
        }
        for status in statuses
    }


def handle_problems(api: FastAPI) -> None:
    @api.exception_handler(HTTPException)
    async def told(request: Request, error: HTTPException) -> JSONResponse:
        if error.status_code == 405:
            methods = ", ".join(_methods(request))
            return _problem(
                request, 405, f"{request.method} is not for this address; what is: {methods}", {"Allow": methods}
            )
        return _problem(request, error.status_code, str(error.detail), dict(error.headers or {}))

    @api.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        wrong = error.errors()
        where = _place(wrong[0])
        said = dict.fromkeys(one["msg"] for one in wrong if _place(one) == where)
        hint = _UNESCAPED if any(_has_lost_a_plus(one) for one in wrong if _place(one) == where) else ""
        return _problem(request, 422, f"{where}: {', or: '.join(said)}{hint}")

    @api.exception_handler(MemoryFault)
    async def unavailable(request: Request, error: MemoryFault) -> JSONResponse:
        """What the class says, as the message may name files."""
        if isinstance(error, Ambiguous | Changed):
            return _problem(request, 409 if isinstance(error, Ambiguous) else 412, str(error.__doc__))
        return _problem(request, 503, str(error.__doc__), {"Retry-After": "5"})

    @api.exception_handler(InvalidId)
    async def no_id(request: Request, error: InvalidId) -> JSONResponse:
        return _problem(request, 422, str(error))

    @api.exception_handler(ClientDisconnect)
    async def gone(request: Request, error: ClientDisconnect) -> JSONResponse:
        return _problem(request, 400, "The body broke off")

    @api.exception_handler(Exception)
    async def broken(request: Request, error: Exception) -> JSONResponse:
        return _problem(request, 500, "Something went wrong on our side; the log says what")


def _problem(request: Request, status: int, detail: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return problem(status, detail, headers, **for_openai(request.scope["path"], status, detail))


def _has_lost_a_plus(wrong: Mapping[str, Any]) -> bool:
    """Whether it is a time in an address whose zone came with a blank before it."""
    given = wrong.get("input")
    return wrong["loc"][0] == "query" and isinstance(given, str) and _ZONE_WITH_BLANK.search(given) is not None


def _place(wrong: Mapping[str, Any]) -> str:
    """Of what may be of several kinds there is one error each, and a kind is no place."""
    return ".".join(str(part) for part in wrong["loc"] if not _KIND.fullmatch(str(part)))


def _methods(request: Request) -> list[str]:
    """Of all routes at an address: the one that refused knows its own alone. Whatever may be had by GET, its head may
    be had alone."""
    found = [
        method
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE")
        if any(route.matches({**request.scope, "method": method})[0] is Match.FULL for route in request.app.routes)
    ]
    return ["HEAD", *found] if "GET" in found else found
