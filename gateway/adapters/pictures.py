"""Which pictures of an answer's Markdown are shown as pictures; the others stay links. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable

from config.addresses import public_host
from config.tenants import Tenant
from gateway.messages import Answer

MOST = 10  # an answer; each is a message of its own, and some models draw a catalogue


def shown_in(tenant: Tenant, answer: Answer) -> Callable[[str], bool]:
    """Asked once for each picture in order. The shop's own words may show any picture that the platform can fetch, a
    model's only those of the hosts that the shop named, and those whose very address the shop wrote in its answers or
    instructions."""
    seen: set[str] = set()

    def shows(url: str) -> bool:
        host = public_host(url)
        if host is None or url in seen or len(seen) >= MOST:
            return False
        if not (answer.by_shop or host in tenant.image_hosts or _wrote(tenant, url)):
            return False
        seen.add(url)
        return True

    return shows


def _wrote(tenant: Tenant, url: str) -> bool:
    """Whether the address stands in the shop's own words."""
    said = [words or "" for entry in tenant.faq for words in (entry.answer.th, entry.answer.en)]
    told = [agent.instructions or "" for agent in tenant.agents.values()]
    pictures = [one.image for entry in tenant.faq for one in entry.media]
    return url in pictures or any(re.search(re.escape(url) + r"(?![^\s)>\"'])", words) for words in (*said, *told))
