"""`/docs`: the API on one page, made from its OpenAPI document. Loads nothing from anywhere, needs no scripts."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any

import orjson
from fastapi import FastAPI, Response
from jinja2 import Environment, FileSystemLoader

from gateway.routes.page import FILES

_METHODS = ("get", "post", "put", "patch", "delete")


def add_to(api: FastAPI) -> None:
    pages = Environment(loader=FileSystemLoader(FILES), autoescape=True, trim_blocks=True, lstrip_blocks=True)

    @api.get("/docs", include_in_schema=False)
    def docs() -> Response:
        told = api.openapi()
        style = (FILES / "docs.css").read_text("utf-8")
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        body = pages.get_template("docs.html").render(
            title=told["info"]["title"], version=told["info"]["version"], style=style, groups=_groups(told)
        )
        policy = (
            f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; frame-ancestors 'none'; base-uri 'none'"
        )
        return Response(body, media_type="text/html", headers={"Content-Security-Policy": policy})


def _groups(told: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The operations by the first part of their path that says anything."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for path, methods in told["paths"].items():
        name = next((part for part in path.split("/") if part not in ("", "api", "v1")), "/")
        for method in _METHODS:
            if (what := methods.get(method)) is not None:
                groups.setdefault(name, []).append(_shown(path, method, what, told))
    return groups


def _shown(path: str, method: str, what: Mapping[str, Any], told: Mapping[str, Any]) -> dict[str, Any]:
    body = what.get("requestBody", {}).get("content", {}).get("application/json", {})
    return {
        "path": path,
        "method": method.upper(),
        "summary": what.get("summary", ""),
        "description": what.get("description", ""),
        "parameters": what.get("parameters", []),
        "example": _pretty(_example(body, told)),
        "fields": _fields(body.get("schema", {}), told),
        "responses": what.get("responses", {}),
    }


def _example(body: Mapping[str, Any], told: Mapping[str, Any]) -> Any:
    if "example" in body:
        return body["example"]
    examples = body.get("examples") or {}
    if isinstance(examples, Mapping) and examples:
        return next(iter(examples.values())).get("value")
    schema = _meant(body.get("schema", {}), told)
    return schema.get("example") or next(iter(schema.get("examples") or ()), None)


def _fields(schema: Mapping[str, Any], told: Mapping[str, Any]) -> list[dict[str, Any]]:
    schema = _meant(schema, told)
    needed = schema.get("required", ())
    return [
        {"name": name, "required": name in needed, "description": _meant(one, told).get("description", "")}
        for name, one in schema.get("properties", {}).items()
    ]


def _meant(schema: Mapping[str, Any], told: Mapping[str, Any]) -> Mapping[str, Any]:
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    found: Mapping[str, Any] = told.get("components", {}).get("schemas", {}).get(name, {}) if name else schema
    return found


def _pretty(value: Any) -> str:
    return "" if value is None else orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
