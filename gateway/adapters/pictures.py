"""Which pictures of an answer's Markdown are shown as pictures; the others stay links. Pure."""

from __future__ import annotations

from collections.abc import Callable

from config.addresses import public_host
from config.tenants import Tenant
from gateway.messages import Answer

MOST = 10  # an answer; each is a message of its own, and some models draw a catalogue


def shown_in(tenant: Tenant, answer: Answer) -> Callable[[str], bool]:
    """Asked once for each picture in order. The shop's own words may show any picture that the platform can fetch, a
    model's only those of the hosts that the shop named."""
    seen: set[str] = set()

    def shows(url: str) -> bool:
        host = public_host(url)
        if host is None or not (answer.by_shop or host in tenant.image_hosts) or url in seen or len(seen) >= MOST:
            return False
        seen.add(url)
        return True

    return shows
