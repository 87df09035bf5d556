"""JSON bodies, read once the caller is known, within a size; a problem document for whatever is wrong with them."""

from __future__ import annotations

from typing import Any, TypeVar

import orjson
from fastapi import HTTPException, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError

LONGEST = 1_000_000  # bytes

Model = TypeVar("Model", bound=BaseModel)


async def read(request: Request, longest: int = LONGEST) -> bytes:
    """Raises HTTPException 413."""
    said = request.headers.get("content-length", "")
    if said.isascii() and said.isdigit() and int(said) > longest:
        raise _too_large(longest)
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > longest:
            raise _too_large(longest)
    return bytes(body)


async def parsed(request: Request, model: type[Model]) -> Model:
    """Raises HTTPException 413, 400 for what is no JSON; RequestValidationError, 422."""
    try:
        value = orjson.loads(await read(request))
    except orjson.JSONDecodeError as error:
        raise HTTPException(400, f"The body is not JSON: {error.msg}") from None
    try:
        return model.model_validate(value)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_context=False, include_input=False)
        raise RequestValidationError([{**one, "loc": ("body", *one["loc"])} for one in wrong]) from None


def takes(model: type[BaseModel], **examples: Any) -> dict[str, Any]:
    """What OpenAPI says of a route that reads its body with `parsed`: `openapi_extra`. Examples by their summaries."""
    shown = {name: {"summary": name.replace("_", " "), "value": value} for name, value in examples.items()}
    content = {"schema": model.model_json_schema(ref_template="#/components/schemas/{model}"), "examples": shown}
    return {"requestBody": {"required": True, "content": {"application/json": content}}}


def _too_large(longest: int) -> HTTPException:
    return HTTPException(413, f"The body is over {longest} bytes")
