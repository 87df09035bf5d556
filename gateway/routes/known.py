"""Nothing may be asked that a route doesn't know: a filter that is passed over gives what was not asked for, and
deletes what was not meant."""

from __future__ import annotations

from fastapi import HTTPException, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

_ALWAYS = frozenset({"tenant"})  # whoever has the admin key may name it with every call


def check_known(request: Request) -> None:
    """Of the API's routes alone: pages are linked to with all sorts of things. Raises HTTPException 422."""
    route = request.scope.get("route")
    if not isinstance(route, APIRoute) or not route.path.startswith("/api/"):
        return
    asked = set(request.query_params) - _ALWAYS
    known = taken(route.dependant) if asked else set()
    for name in sorted(asked - known):
        raise HTTPException(422, f"query: {name[:60]!r} is not known here; what is: {', '.join(sorted(known))}")


def taken(by: Dependant) -> set[str]:
    """The names in the query that a function takes, and those that it depends on."""
    return {one.alias for one in by.query_params}.union(*map(taken, by.dependencies))
