"""Nothing may be asked that a route doesn't know, nor twice what it takes once: a filter that is passed over gives what
was not asked for, and deletes what was not meant."""

from __future__ import annotations

from typing import Any, get_args, get_origin

from fastapi import HTTPException, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, APIWebSocketRoute

_ALWAYS = frozenset({"tenant"})  # whoever has the admin key may name it with every call


def check_known(request: Request) -> None:
    """Of the API's routes alone: pages are linked to with all sorts of things. Raises HTTPException 422."""
    route = request.scope.get("route")
    if not isinstance(route, APIRoute | APIWebSocketRoute) or not route.path.startswith("/api/"):
        return
    asked = [name for name, _ in request.query_params.multi_items()]
    known = taken(route.dependant) if asked else {}
    for name in sorted(set(asked) - set(known) - _ALWAYS):
        raise HTTPException(422, f"query: {name[:60]!r} is not known here; what is: {', '.join(sorted(known))}")
    for name in sorted(set(asked)):
        if asked.count(name) > 1 and not known.get(name):
            raise HTTPException(422, f"query: {name} is given {asked.count(name)} times, and only one can be meant")


def one_tenant(request: Request, tenant: str | None = None) -> str | None:
    """The tenant that a request names, in its address or elsewhere. Raises HTTPException 422 where it names two."""
    named = {*request.query_params.getlist("tenant"), *([] if tenant is None else [tenant])}
    if len(named) > 1:
        raise HTTPException(422, "tenant: two different ones are named, and only one can be meant")
    return next(iter(named), None)


def taken(by: Dependant) -> dict[str, bool]:
    """The names in the query that a function takes, and those that it depends on; True: as often as one likes."""
    names = {one.alias: _many(one.field_info.annotation) for one in by.query_params}
    for other in by.dependencies:
        names |= taken(other)
    return names


def _many(annotation: Any) -> bool:
    return any(get_origin(one) is list for one in (annotation, *get_args(annotation)))
