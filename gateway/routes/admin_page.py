"""The admin page's frame: what every page of it has, how text of strangers is shown, what is answered when something is
wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast
from urllib.parse import urlencode, urlsplit
from zoneinfo import ZoneInfo

from fastapi import HTTPException, Request, Response
from fastapi.routing import APIRoute
from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup, escape
from redis.exceptions import RedisError

from config.tenants import Tenant
from gateway.audit import DEED, Deed
from gateway.errors import InboxUnavailable
from gateway.routes.admin_session import Sessions, SignedOut, Staff
from gateway.routes.admin_texts import MONTHS, Say
from gateway.routes.page import FILES, Static, shared_names
from gateway.texts import Tongue
from memory.errors import Ambiguous, Changed, MemoryFault
from memory.facts import said
from memory.facts import shown as value_shown
from memory.keys import InvalidId

TABS = ("facts", "episodes", "procedures", "users", "checkpoints", "events")
CLIPPED = 400  # characters of a text in a list

_LANGUAGE = "chat_chat_language"
_YEAR = 365 * 86400
_UNSHOWN = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u2028\u2029\u202a-\u202e\u2066-\u2069]"
)
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "frame-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}


def printable(text: str) -> str:
    """What can't be shown, or would turn the text around it about, becomes a visible mark."""
    return _UNSHOWN.sub("\ufffd", text)


def _finalize(value: Any) -> Any:
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return printable(value)


def label(text: Any) -> str:
    """One short line for a title or an attribute, without marks that turn text about."""
    return " ".join(printable(str(text)).translate({0x200E: "", 0x200F: "", 0x61C: ""}).split())[:120]


def short(text: Any) -> str:
    """A name, or what of an id tells it from others: `line:U4af2c9…`."""
    plain = label(text)
    head, colon, own = plain.partition(":")
    return f"{head}:{own[:8]}…" if colon and len(own) > 14 and head.isalpha() else plain


def clip(text: Any, longest: int = CLIPPED) -> str:
    plain = value_shown(text) if not isinstance(text, str) else text
    return plain if len(plain) <= longest else plain[:longest].rstrip() + "…"


def editable(text: str) -> Markup:
    """Into a textarea as it is; HTML drops a first line end, so one is put before it."""
    return Markup("\n") + escape(re.sub(r"[\x00\ud800-\udfff]", "\ufffd", text))


def pushed(month: Mapping[str, int | None]) -> int:
    """A LINE channel's pushes of this month: as LINE counts them, which counts others' too, or as we did since."""
    return max(month["used"] or 0, month["paid"] or 0)


class Pages:
    def __init__(self, sessions: Sessions, clock: Callable[[], datetime]) -> None:
        self.sessions = sessions
        self._clock = clock
        self._static = Static(FILES)
        self._templates = Environment(
            loader=FileSystemLoader(FILES / "admin"),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
            finalize=_finalize,
        )
        self._templates.filters |= {
            "label": label,
            "short": short,
            "clip": clip,
            "editable": editable,
            "pushed": pushed,
        }
        self._templates.tests["text"] = lambda value: isinstance(value, str)

    def render(
        self,
        request: Request,
        template: str,
        staff: Staff | None = None,
        tenant: Tenant | None = None,
        *,
        status: int = 200,
        **values: Any,
    ) -> Response:
        language = language_of(request)
        say = Say(language)
        zone = ZoneInfo(tenant.timezone) if tenant else ZoneInfo("UTC")
        shops = self.sessions.tenants(staff) if staff else []
        body = self._templates.get_template(template).render(
            lang=language,
            say=say,
            static=self._static.link,
            staff=staff,
            csrf=staff.csrf if staff else "",
            tenant=tenant,
            several=len(shops) > 1,
            which=tenant.id if tenant and tenant.name in shared_names(shops) else "",
            tabs=TABS,
            here=here(request),
            switch=here(request, lang="en" if language == "th" else "th"),
            when=lambda moment, day=False: written(moment, self._clock(), zone, language, day=day),
            in_words=lambda key, value, text: in_words(key, value, text, say),
            day_of=lambda day: f"{day.day} {MONTHS[language][day.month - 1]}",
            number=lambda count: f"{count:,}",
            done=self._done(request, say),
            undo=request.query_params.get("undo", "") if request.query_params.get("done") == "saved" else "",
            tab=values.pop("tab", ""),
            link=lambda path, **query: f"{path}?{urlencode(query)}" if query else path,
            **values,
        )
        response = Response(body.encode("utf-8", "replace"), status, _HEADERS, "text/html; charset=utf-8")
        if (chosen := request.query_params.get("lang")) in ("th", "en"):
            secure = self.sessions.secure(request)
            response.set_cookie(_LANGUAGE, chosen, max_age=_YEAR, samesite="lax", httponly=True, secure=secure)
        return response

    def confirm(
        self,
        request: Request,
        staff: Staff,
        tenant: Tenant,
        *,
        what: str,
        do: str,
        go: str,
        action: str,
        back: str,
        tab: str,
        refs: Sequence[str] = (),
        fields: Mapping[str, str] = {},
        count: int | None = None,
        **more: str,
    ) -> Response:
        """Asks whether it is meant. The form that comes back says the same again, with `sure`; with a `name` it has to
        be typed."""
        values: dict[str, Any] = {"name": "", "wrong": "", "other": ""} | more
        return self.render(
            request, "confirm.html", staff, tenant, tab=tab, what=what, do=do, go=go, action=action, back=back,
            refs=refs, fields=fields, count=len(refs) if count is None else count, **values,
        )  # fmt: skip

    def warm(self) -> None:
        """Compiles the templates: a quarter of a second that nobody has to wait for."""
        for name in self._templates.list_templates():
            self._templates.get_template(name)

    def trouble(self, request: Request, error: Exception) -> Response:
        """What is wrong, in words, and the way back to where one came from."""
        status = status_of(error)
        came = urlsplit(request.headers.get("referer", ""))
        path = f"{came.path}?{came.query}" if came.query else came.path
        back = ours(path, "/memories") if path != here(request) or request.method != "GET" else "/memories"
        staff, tenant = self.sessions.known(request)
        return self.render(request, "trouble.html", staff, tenant, status=status, code=status, back=back)

    def _done(self, request: Request, say: Say) -> str:
        name = request.query_params.get("done", "")
        count = request.query_params.get("n", "0")
        if name == "undo_late":
            return say(name)
        known = re.fullmatch(r"[a-z]{1,20}", name) and say.knows(f"done.{name}")
        return say(f"done.{name}", count=count if count.isdigit() else "0") if known else ""

    def route_class(self) -> type[APIRoute]:
        """Routes whose errors are pages too; whoever is signed out is sent to sign in."""
        pages = self

        class Page(APIRoute):
            def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
                handle = super().get_route_handler()

                async def handled(request: Request) -> Response:
                    try:
                        return await handle(request)
                    except SignedOut:
                        back = here(request) if request.method == "GET" else ""
                        return see(f"/admin?{urlencode({'back': back})}" if back else "/admin")
                    except (HTTPException, MemoryFault, InvalidId, RedisError, InboxUnavailable, OSError) as error:
                        return pages.trouble(request, error)

                return handled

        return Page


def status_of(error: Exception) -> int:
    if isinstance(error, HTTPException):
        return error.status_code
    if isinstance(error, Ambiguous):
        return 409
    if isinstance(error, Changed):
        return 412
    return 422 if isinstance(error, InvalidId) else 503


def language_of(request: Request) -> Tongue:
    """As asked, else as chosen before, else the browser's first of ours."""
    for wanted in (request.query_params.get("lang"), request.cookies.get(_LANGUAGE)):
        if wanted in ("th", "en"):
            return cast(Tongue, wanted)
    accepted = [one.strip()[:2].lower() for one in request.headers.get("accept-language", "").split(",")]
    return next((cast(Tongue, one) for one in accepted if one in ("th", "en")), "en" if any(accepted) else "th")


def here(request: Request, **changed: str) -> str:
    """The page's own address, without what it said once."""
    left = [(name, value) for name, value in request.query_params.multi_items() if name not in (*_ONCE, *changed)]
    query = urlencode([*left, *changed.items()])
    return f"{request.url.path}?{query}" if query else request.url.path


_ONCE = ("done", "n", "undo", "edit", "lang", "find", "stats")


def ours(back: str, otherwise: str) -> str:
    """An address on this page, or `otherwise`: nobody is sent anywhere else."""
    plain = re.fullmatch(r"/(?:memories|admin)(?:[/?][\x21-\x7e]*)?", back)
    return back if plain and "\\" not in back and urlsplit(back).netloc == "" else otherwise


def with_(path: str, **more: object) -> str:
    return f"{path}{'&' if '?' in path else '?'}{urlencode({name: str(value) for name, value in more.items()})}"


def deed(request: Request, did: Deed, users: Iterable[str] = ()) -> None:
    """For the audit log: what a form does, and to whom, which its address does not tell."""
    request.scope[DEED] = did, tuple(users)


def see(path: str) -> Response:
    return Response(status_code=303, headers={"Location": path, "Cache-Control": "no-store"})


def in_words(key: str, value: Any, text: str, say: Say) -> str:
    """A fact as it was told; where nobody told it in words, what it is about has a name in the page's language."""
    if text != said(key, value) or not say.knows(f"key.{key}"):
        return text
    plain = value_shown(value)
    named = {"preferred_language": f"lang.{plain}", "current_topic": f"type.{plain.upper()}"}.get(key, "")
    return f"{say(f'key.{key}')}: {say(named) if say.knows(named) else plain}"


def written(moment: Any, now: datetime, zone: ZoneInfo, language: Tongue, *, day: bool) -> Markup:
    """A time of the shop's as people write it, no longer than it need be; Thai years are Buddhist."""
    try:
        at = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
        if not isinstance(at, datetime):
            return escape("–")
        local = (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(zone)
    except (ValueError, OverflowError):
        return escape("–")
    today, date = now.astimezone(zone).date(), f"{local.day} {MONTHS[language][local.month - 1]}"
    year = local.year + 543 if language == "th" else local.year
    full = f"{date} {year} {local:%H:%M}"
    if local.year != today.year:
        date += f" {year}"
    told = date if day else f"{local:%H:%M}" if local.date() == today else f"{date} {local:%H:%M}"
    stamp = local.isoformat(timespec="seconds")
    return Markup('<time datetime="{}" title="{}">{}</time>').format(stamp, full, told)


def picked(query: Mapping[str, str], name: str, among: Any) -> str:
    """A filter's value if it is one of these; else all are shown."""
    value = query.get(name, "")
    return value if value in set(among) else ""
