"""A message that its writer changed or took back, in what is kept of it: pure.

A line's `metadata` names the message as the platform does: `platform_id`, or `platform_ids` where an answer went out in
several pieces. What somebody said in a group bears `sender`, whose long-term memory is concerned.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from typing import Any, cast

from memory import history, unsaid
from memory.episodes import Episode, actions_of
from memory.facts import attributes, without_keys, without_sources
from memory.models import LongTermMemory, Message, ShortTermMemory
from memory.surrogates import without_surrogates
from processors.models import Language, MemoryEvent
from processors.personal import lasting

SOURCES = "sources"  # in an event's payload: the ids of all messages it was made of, where they are several

_OF_NO_ONE = ("preferred_language", "current_topic")  # what an event may tell that is nobody's in particular
_NAMED = 3  # characters of a value that can be told from any other word

Change = Callable[[Message], Message | None]


def is_named(line: Message, platform_id: str) -> bool:
    metadata: Any = line.get("metadata")  # from a file: of any kind
    if not isinstance(metadata, dict):
        return False
    several = metadata.get("platform_ids")
    return metadata.get("platform_id") == platform_id or (isinstance(several, list) and platform_id in several)


def find(lines: Sequence[Message], platform_id: str) -> Message | None:
    return next((line for line in lines if is_named(line, platform_id)), None)


def corrected(text: str, at: str) -> Change:
    """What makes of a line the same line with another text. The texts before stand in `metadata["edited"]`, each with
    `until`, the time `at` which it was changed."""

    def change(line: Message) -> Message:
        if line["message"] == text:
            return line
        metadata = dict(line.get("metadata") or {})
        metadata["edited"] = [*metadata.get("edited", ()), {"message": line["message"], "until": at}]
        return cast("Message", without_surrogates({**line, "message": text, "metadata": metadata}))

    return change


def removed(_: Message) -> None:
    """Nothing is left of it."""


def in_session(session: ShortTermMemory, platform_id: str, change: Change) -> ShortTermMemory:
    """The session with that message changed, or without it; the very same where it holds none."""
    if find([*session.carried, *session.history], platform_id) is None:
        return session
    gone: list[str] = []

    def amended(lines: Sequence[Message]) -> list[Message]:
        out = []
        for line in lines:
            after = change(line) if is_named(line, platform_id) else line
            if after is not None:
                out.append(after)
            elif "message_id" in line:
                gone.append(line["message_id"])  # a late repeat of it must not bring it back
        return out

    carried, lines = amended(session.carried), amended(session.history)
    update = {"carried": carried, "history": lines, "recent_ids": [*session.recent_ids, *gone]}
    return session.model_copy(update=update)


def retold(session: ShortTermMemory, memory: LongTermMemory | None) -> ShortTermMemory:
    """The session with what long-term memory told it at its beginning brought up to date."""
    variables = dict(session.variables)
    attributes = dict(memory.attributes) if memory else {}
    for name in ("preferred_language", "current_topic"):
        attributes.pop(name, None)
    variables.pop("preferences", None)
    if attributes:
        variables["preferences"] = attributes
    return session.model_copy(update={"summary": memory.history_summary if memory else "", "variables": variables})


def is_of(event: MemoryEvent, message_ids: Collection[str]) -> bool:
    """Whether one of these messages went into the event."""
    sources = event.payload.get(SOURCES) or ()
    return event.event_id in message_ids or any(source in message_ids for source in sources)


def told_by(events: Sequence[MemoryEvent]) -> list[str]:
    """What these events tell of the person, in the words in which an answer may repeat it."""
    held = [value for event in events for name, value in lasting(event).holds.items() if name not in _OF_NO_ONE]
    several = [value if isinstance(value, list) else [value] for value in held]
    return [str(one) for values in several for one in values if len(str(one)) >= _NAMED]


def in_longterm(
    memory: LongTermMemory, message_ids: Collection[str], instead: MemoryEvent | None, *, keep_gist: bool
) -> LongTermMemory:
    """Without the events of these messages and whatever they alone had told: attributes, the summary; `instead` takes
    their place. An event of several messages goes as a whole.

    `keep_gist`: the messages are of a session that has not ended yet, so no gist was made of them.
    """
    gone = [event for event in memory.events if is_of(event, message_ids)]
    facts = without_sources(memory.facts, message_ids)
    if not gone and instead is None and keep_gist and facts == memory.facts:
        return memory
    events = [event for event in memory.events if event not in gone]
    if instead is not None and all(event.event_id != instead.event_id for event in events):
        at = next((n for n, event in enumerate(events) if event.timestamp > instead.timestamp), len(events))
        events.insert(at, instead)
    view = _attributes(attributes(facts), gone, events)
    told = lasting(instead).holds if instead is not None else {}
    view |= {name: value for name, value in told.items() if name not in view}
    now = max((event.timestamp for event in (*gone, *events)), default=datetime.min.replace(tzinfo=UTC))
    facts = without_keys(facts, view, now)
    held = told_by(gone)
    episodes = [_untold(episode, message_ids, held) for episode in memory.episodes]
    summary = history.anew(memory, events, _language(events), keep_gist=keep_gist)
    known = {"facts": facts, "attributes": attributes(facts), "episodes": episodes}
    return memory.model_copy(update={"events": events, "history_summary": summary, **known})


def _untold(episode: Episode, message_ids: Collection[str], told: Collection[str]) -> Episode:
    """The episode without these messages, which `told` these values, and without what was made of them or repeated by
    the bot."""
    gone = [line for line in episode.conversation if line.get("message_id") in message_ids]
    if not gone:
        return episode
    left = [line for line in episode.conversation if line not in gone]
    for taken in gone:
        left = [unsaid.without(one, str(taken["message"]), told) if one["role"] == "bot" else one for one in left]
    first = next((line["message"] for line in left if line["role"] == "user"), "")
    trigger = {**episode.trigger, "input": first}
    output = next((line["message"] for line in reversed(left) if line["role"] == "bot"), "")
    done = [action for line in left for action in actions_of(line)]
    told = {"trigger": trigger, "output": output, "actions": done, "summary": ""}
    return episode.model_copy(update={"conversation": left, **told})


def _attributes(known: dict[str, Any], gone: Sequence[MemoryEvent], left: Sequence[MemoryEvent]) -> dict[str, Any]:
    """Without the values that only those events had told. What was replaced by them comes back if it is still known."""
    told = [lasting(event).holds for event in left]
    out = dict(known)
    for event in gone:
        for name, value in lasting(event).holds.items():
            others = [one[name] for one in told if name in one]
            if isinstance(value, list) and isinstance(out.get(name), list):
                again = [item for other in others if isinstance(other, list) for item in other]
                out[name] = [item for item in out[name] if item not in value or item in again]
                if not out[name]:
                    del out[name]
            elif out.get(name) == value and value not in others:
                if others:
                    out[name] = others[-1]
                else:
                    del out[name]
    return out


def _language(events: Sequence[MemoryEvent]) -> Language | None:
    spoken = (event.payload.get("language") for event in reversed(events))
    return next((language for language in spoken if language in ("th", "en", "mixed")), None)
