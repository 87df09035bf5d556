"""What may happen to a session, as pure functions: a session in, a session out, nothing stored.

The manager and the gateway's turn are built from the same ones, so a session means the same on both ways.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import orjson

from memory import keys
from memory.keys import ConversationRef
from memory.models import LongTermMemory, Message, ShortTermMemory
from memory.surrogates import without_surrogates
from processors.models import EventType, MemoryEvent, iso

ALWAYS_SAVED = 0.9  # a score from here on is saved whatever the threshold
GENERAL_TOPIC = "general"

_REMEMBERED_IDS = 64  # ids of messages that left the history, still known so that a late repeat is not appended
_LET_GO = 24  # of these at once: their number goes on telling how many left, for every step of `context.steady`


def new_session(
    ref: ConversationRef,
    session_id: str,
    lm: LongTermMemory | None,
    carried: Sequence[Message],
    now: datetime,
    ttl: float,
) -> ShortTermMemory:
    """A session that begins with what long-term memory knows: its summary, attributes and preferences."""
    attributes = dict(lm.attributes) if lm else {}
    variables: dict[str, Any] = {
        "preferred_language": attributes.pop("preferred_language", None),
        "current_topic": attributes.pop("current_topic", None) or GENERAL_TOPIC,
    }
    if attributes:
        variables["preferences"] = attributes
    return ShortTermMemory(
        tenant_id=ref.tenant,
        user_id=ref.user,
        session_id=session_id,
        agent=keys.agent_name(ref.agent),
        conversation_id=ref.conversation,
        carried=list(carried),
        summary=lm.history_summary if lm else "",
        variables=variables,
        created_at=_kept(now),
        expires_at=_end(now, ttl),
    )


def append(
    session: ShortTermMemory, messages: Sequence[Message], *, max_messages: int, now: datetime, ttl: float
) -> ShortTermMemory:
    """The session with the messages that it does not know yet, the newest `max_messages` of them kept.

    A message whose `message_id` was appended before changes nothing, not even `expires_at`: if none is new, the very
    same session comes back. One that so far was only carried over (a try that ended between the transcript and the
    session wrote it down) moves into the history. Times in the history never run backwards or stand still; what has
    none gets `now`.
    """
    recent, told = session.recent_ids, [line.get("message_id") for line in session.history]
    last = time_of(session.history[-1]) if session.history else None
    added: list[Message] = []
    for message in messages:
        message_id = message.get("message_id")
        if message_id is not None:
            if message_id in recent or message_id in told:
                continue
            told.append(message_id)
        moment = min(time_of(message) or now, now)
        if last is not None and moment <= last:
            moment = last + timedelta(milliseconds=1)
        last = moment
        clean = _clean(message)
        clean["timestamp"] = iso(moment)
        added.append(clean)
    if not added:
        return session
    history = [*session.history, *added]
    gone, history = history[:-max_messages], history[-max_messages:]
    left = [message["message_id"] for message in gone if "message_id" in message]
    return session.changed(
        {
            "history": history,
            "carried": _without(session.carried, added),
            "recent_ids": _remembered([*recent, *left]),
            "expires_at": _later(session, _end(now, ttl)),
        }
    )


def _without(carried: list[Message], added: Sequence[Message]) -> list[Message]:
    if not carried:
        return carried
    new = _ids(added)
    return [message for message in carried if message.get("message_id") not in new]


def _clean(message: Message) -> Message:
    """A copy without lone surrogates: nearly always there are none, and it can be written as it is."""
    try:
        orjson.dumps(message)
    except TypeError:
        return cast("Message", without_surrogates(message))
    return {**message}


def joined(session: ShortTermMemory, other: ShortTermMemory, max_messages: int) -> ShortTermMemory:
    """The session with what another one of the same person holds, in the order in which it was said. What both say of
    one thing, `session` decides; in the hands of staff it is if one of them is."""
    known = _ids(session.history) | set(session.recent_ids)
    new = [message for message in other.history if message.get("message_id") not in known]
    history = sorted([*session.history, *new], key=lambda message: message.get("timestamp") or "")
    gone, history = history[:-max_messages], history[-max_messages:]
    left = [message["message_id"] for message in gone if "message_id" in message]
    own = {name: value for name, value in session.variables.items() if value is not None}
    facts = {fact.id: fact for fact in (*other.facts, *session.facts)}
    ends = [end for end in (session.expires_at, other.expires_at) if end is not None]
    return session.model_copy(
        update={
            "history": history,
            "carried": [message for message in session.carried if message.get("message_id") not in _ids(new)],
            "recent_ids": _remembered([*other.recent_ids, *session.recent_ids, *left]),
            "facts": list(facts.values()),
            "variables": {**other.variables, **own},
            "state": "human" if "human" in (session.state, other.state) else session.state,
            "last_intent": session.last_intent or other.last_intent,
            "expires_at": max(ends) if len(ends) == 2 else None,
        }
    )


def known_ids(session: ShortTermMemory) -> set[str]:
    """Ids of every message that this session has seen or was given by an earlier one."""
    return _ids(session.carried) | _ids(session.history) | set(session.recent_ids)


def note_event(session: ShortTermMemory, event: MemoryEvent) -> ShortTermMemory:
    """The session after its last message was understood: `last_intent`, language and topic brought up to date."""
    variables = dict(session.variables)
    variables.setdefault("preferred_language", None)
    variables.setdefault("current_topic", GENERAL_TOPIC)
    language = event.payload.get("language")
    if language in ("th", "en") or (language == "mixed" and not variables["preferred_language"]):
        variables["preferred_language"] = language
    if topic := _topic(event.payload):
        variables["current_topic"] = topic
    elif event.event_type is not EventType.GENERIC_EVENT:
        variables["current_topic"] = event.event_type.lower()
    return session.changed({"last_intent": str(event.event_type), "variables": variables})


def worth_saving(event: MemoryEvent, threshold: float) -> bool:
    return event.importance_score >= min(threshold, ALWAYS_SAVED)


def _topic(payload: dict[str, Any]) -> str | None:
    """What the message is about in the classifier's words; rules name none."""
    details = payload.get("details")
    found = details.get("topic") if isinstance(details, dict) else payload.get("topic") or payload.get("question_type")
    return found if isinstance(found, str) and found else None


def _remembered(ids: list[str]) -> list[str]:
    more = max(0, len(ids) - _REMEMBERED_IDS)
    return ids[-(-more // _LET_GO) * _LET_GO :]


def _ids(messages: Sequence[Message]) -> set[str]:
    return {message["message_id"] for message in messages if "message_id" in message}


def kept_for(session: ShortTermMemory, now: datetime, ttl: float) -> float:
    """Seconds that a store keeps the session by its tenant's `ttl`: longer while a person has it."""
    if ttl <= 0 or session.state != "human" or session.expires_at is None:
        return ttl
    return max(ttl, (session.expires_at - now).total_seconds())


def _later(session: ShortTermMemory, end: datetime | None) -> datetime | None:
    """While a person of the shop has the conversation, its session ends no sooner than they were given time for."""
    if session.state == "human" and session.expires_at is not None and end is not None:
        return max(session.expires_at, end)
    return end


def _end(now: datetime, ttl: float) -> datetime | None:
    return _kept(now + timedelta(seconds=ttl)) if ttl > 0 else None


def _kept(moment: datetime) -> datetime:
    """As stores keep it, so that who begins a session has the one that the next one reads."""
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def time_of(message: Message) -> datetime | None:
    try:
        moment = datetime.fromisoformat(message["timestamp"])
    except (KeyError, ValueError, TypeError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
