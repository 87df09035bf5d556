"""What differs from one answer to the next in a shop's own texts: the customer's name, when the shop opens next."""

from __future__ import annotations

from datetime import datetime

from msgspec import structs

from config.tenants import Tenant
from config.variables import put
from gateway.messages import Answer, Kind
from gateway.moment import Moment
from gateway.opening import opens_at
from gateway.rendering import literal
from gateway.texts import Tongue, text

_LONGEST = 40  # characters of a name


def personal(moment: Moment, answer: Answer) -> Answer:
    """The answer with `{{user.name}}` and `{{shop.opens}}` filled in, also where a model repeats the shop's own answer.
    What staff are told of a customer's words is left as it is."""
    if "{{" not in answer.text or moment.last.kind is Kind.NOTICE:
        return answer
    said = put_in(moment.tenant, answer.text, moment.language, name_of(moment), moment.now)
    return structs.replace(answer, text=said)


def put_in(tenant: Tenant, said: str, language: Tongue, name: str, now: datetime) -> str:
    """The text with these two filled in; `name` as somebody calls themselves, "" where that is not known."""

    def value_of(variable: str) -> str | None:
        if variable == "user.name":
            return _shown(name) or text("customer", language)
        if variable == "shop.opens":
            return opens_at(tenant, now, language) or text("soon", language)
        return None

    return put(said, value_of)


def name_of(moment: Moment) -> str:
    """As they call themselves, else as their platform does."""
    own = moment.session.variables.get("preferences")
    told = own.get("name") if isinstance(own, dict) else None
    return told if isinstance(told, str) else moment.last.sender_name or ""


def _shown(name: str) -> str:
    """Never more than a name, and never markup."""
    plain = " ".join("".join(one if one.isprintable() else " " for one in name).split())[:_LONGEST].strip()
    return literal(plain)
