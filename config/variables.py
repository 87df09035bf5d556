"""`{{shop.phone}}` and its like in a shop's own texts: what they stand for, and which are none.

What the shop says of itself is filled in when its file is read; what differs from one answer to the next stays for the
gateway: see PERSONAL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from config.mistakes import Loc, nearest
from config.tenant_model import Tenant
from config.texts import Text

VARIABLE = re.compile(r"\{\{\s*([^{}]{1,80}?)\s*\}\}")
PERSONAL = ("user.name", "shop.opens")  # the customer's name; when the shop opens next


def known(tenant: Tenant) -> list[str]:
    return [*PERSONAL, "shop.name", *(f"shop.{name}" for name in tenant.shop if name != "name")]


def unknown(tenant: Tenant) -> Iterator[tuple[Loc, str, str]]:
    """Where a variable stands that is none, what is wrong, and how to mend it."""
    for loc, text in _texts(tenant):
        for remedy in unknown_in(tenant, text):
            yield loc, "has a variable that is not known", remedy


def unknown_in(tenant: Tenant, text: Text) -> Iterator[str]:
    """How to mend each variable of a text that is none."""
    names = known(tenant)
    for found in dict.fromkeys(VARIABLE.findall("\n".join(filter(None, (text.th, text.en))))):
        if found in names:
            continue
        group, _, part = found.rpartition(".")
        near = nearest(part, [name.rpartition(".")[2] for name in names if not group or name.startswith(f"{group}.")])
        near = next((name for name in names if near and name.rpartition(".")[2] == near), None)
        remedy = f"did you mean {{{{{near}}}}}?" if near else f"write one of {', '.join(names)}"
        if not near and group == "shop":
            remedy += f", or add {part}: … under shop"
        yield remedy


def filled(tenant: Tenant) -> Tenant:
    """The tenant with what its shop section says in its answers, replies and instructions."""
    if not _used(tenant):
        return tenant

    def text(given: Text) -> Text:
        return filled_in(tenant, given)

    faq = tuple(entry.model_copy(update={"answer": text(entry.answer)}) for entry in tenant.faq)
    rules = tenant.broadcasts.follow_ups.items()
    follow_ups = {name: rule.model_copy(update={"message": text(rule.message)}) for name, rule in rules}
    broadcasts = tenant.broadcasts.model_copy(update={"follow_ups": follow_ups})
    given = {name: getattr(tenant.replies, name) for name in type(tenant.replies).model_fields}
    replies = tenant.replies.model_copy(update={name: text(one) for name, one in given.items() if one})
    agents = {
        name: agent.model_copy(update={"instructions": _put(tenant, agent.instructions, tenant.language)})
        for name, agent in tenant.agents.items()
    }
    return tenant.model_copy(update={"faq": faq, "replies": replies, "agents": agents, "broadcasts": broadcasts})


def filled_in(tenant: Tenant, given: Text) -> Text:
    """One text with what the shop section says."""
    th, en = (_put(tenant, one, tongue) for one, tongue in ((given.th, "th"), (given.en, "en")))
    return Text.model_construct(th=th, en=en)


def put(text: str, value_of: Callable[[str], str | None]) -> str:
    """The text with its variables' values; what has none stays as it is. Values are not looked at again."""
    return VARIABLE.sub(lambda found: found[0] if (value := value_of(found[1])) is None else value, text)


def _put(tenant: Tenant, text: str | None, tongue: str) -> str | None:
    def value_of(name: str) -> str | None:
        part = name.removeprefix("shop.")
        if part == name or name in PERSONAL:
            return None
        own = tenant.shop.get(part)
        return own.within(tongue) if own else tenant.name if part == "name" else None

    return text and put(text, value_of)


def _used(tenant: Tenant) -> bool:
    instructions = (agent.instructions for agent in tenant.agents.values())
    texts = (one for _, text in _texts(tenant) for one in (text.th, text.en) if one)
    return any("{{" in one for one in (*texts, *instructions))


def _texts(tenant: Tenant) -> Iterator[tuple[Loc, Text]]:
    for index, entry in enumerate(tenant.faq):
        yield ("faq", index, "answer"), entry.answer
    for name in type(tenant.replies).model_fields:
        text: Any = getattr(tenant.replies, name)
        if text:
            yield ("replies", name), text
    for name, rule in tenant.broadcasts.follow_ups.items():
        yield ("broadcasts", "follow_ups", name, "message"), rule.message
