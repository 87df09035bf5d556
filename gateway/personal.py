"""What differs from one answer to the next in a shop's own texts: the customer's name, when the shop opens next."""

from __future__ import annotations

from msgspec import structs

from config.variables import put
from gateway.messages import Answer, Kind
from gateway.moment import Moment
from gateway.opening import opens_at
from gateway.rendering import literal
from gateway.texts import text

_LONGEST = 40  # characters of a name


def personal(moment: Moment, answer: Answer) -> Answer:
    """The answer with `{{user.name}}` and `{{shop.opens}}` filled in, also where a model repeats the shop's own answer.
    What staff are told of a customer's words is left as it is."""
    if "{{" not in answer.text or moment.last.kind is Kind.NOTICE:
        return answer

    def value_of(name: str) -> str | None:
        if name == "user.name":
            return _name(moment)
        if name == "shop.opens":
            return opens_at(moment.tenant, moment.now, moment.language) or text("soon", moment.language)
        return None

    return structs.replace(answer, text=put(answer.text, value_of))


def _name(moment: Moment) -> str:
    """As they call themselves, else as their platform does: never more than a name, and never markup."""
    own = moment.session.variables.get("preferences")
    told = own.get("name") if isinstance(own, dict) else None
    given = told if isinstance(told, str) else moment.last.sender_name or ""
    plain = " ".join("".join(one if one.isprintable() else " " for one in given).split())[:_LONGEST].strip()
    return literal(plain) or text("customer", moment.language)
