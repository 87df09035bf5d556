"""Addresses that others are sent to fetch something from."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

LONGEST = 2000  # characters; LINE takes no more
# A name of several parts whose last is no number: `localhost` and every way to write an IPv4 address are none.
_NAME = re.compile(r"(?:[a-z0-9_](?:[a-z0-9_-]*[a-z0-9])?\.)+[a-z][a-z0-9-]*[a-z0-9]")
_PRIVATE = (".localhost", ".local", ".internal", ".lan", ".home.arpa")


def public_host(url: str) -> str | None:
    """The host of an https address that anybody may fetch, in lower case; None: it is no such address. Names are not
    looked up: whoever fetches it sees where it leads."""
    if not re.fullmatch(r"[!-~]+", url) or len(url) > LONGEST:
        return None
    try:
        parts = urlsplit(url)
        host, _ = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        return None
    if parts.scheme != "https" or "@" in parts.netloc or "\\" in url:
        return None
    if is_host(host):
        return host
    try:
        return host if ipaddress.ip_address(host).is_global else None
    except ValueError:
        return None


def is_host(name: str) -> bool:
    """Whether it is a host's name that means the same to everybody."""
    return _NAME.fullmatch(name) is not None and not name.endswith(_PRIVATE)
