"""Errors as RFC 9457 problem documents."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException


def problem(status: int, detail: str, headers: dict[str, str] | None = None) -> JSONResponse:
    content = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail}
    return JSONResponse(content, status, headers, media_type="application/problem+json")


def handle_problems(api: FastAPI) -> None:
    @api.exception_handler(HTTPException)
    async def told(request: Request, error: HTTPException) -> JSONResponse:
        return problem(error.status_code, str(error.detail), dict(error.headers or {}))

    @api.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        return problem(422, f"{'.'.join(map(str, first['loc']))}: {first['msg']}")

    @api.exception_handler(Exception)
    async def broken(request: Request, error: Exception) -> JSONResponse:
        return problem(500, "Something went wrong on our side; the log says what")
