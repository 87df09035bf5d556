"""How the Bot API reads a text: HTML and entities. Each rule names its section in the platform's documentation."""

from __future__ import annotations

import re
from typing import Any

from tests.standins.model import utf16

# Telegram 2.2: HTML: only these tags
TAGS = {
    "b": "bold", "strong": "bold", "i": "italic", "em": "italic", "u": "underline", "ins": "underline",
    "s": "strikethrough", "strike": "strikethrough", "del": "strikethrough", "a": "text_link", "code": "code",
    "pre": "pre", "blockquote": "blockquote", "tg-spoiler": "spoiler", "span": "spoiler", "tg-emoji": "custom_emoji",
    "tg-time": "date_time",
}  # fmt: skip
ENTITIES = {
    "mention", "hashtag", "cashtag", "bot_command", "url", "email", "phone_number", "text_mention", *TAGS.values(),
    "expandable_blockquote",
}  # fmt: skip
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9-]*)((?:\s+[a-zA-Z-]+(?:\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s>\"']+))?)*)\s*>")
_ATTRIBUTE = re.compile(r"([a-zA-Z-]+)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>\"']+)))?")
# Telegram 2.2: named entities only lt gt amp quot
_CHARACTER = re.compile(r"&(?:(lt|gt|amp|quot)|#(\d+)|#x([0-9a-fA-F]+));")
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"'}


class Refused(Exception):
    """A call the Bot API answers with an error; `parameters` go beside the description."""

    def __init__(self, description: str, code: int = 400, parameters: dict[str, Any] | None = None) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.parameters = parameters


def parsed(text: Any, parse_mode: Any, entities: Any, limit: int, what: str = "message") -> tuple[str, list[Any]]:
    """The visible text and its entities. Raises Refused as the Bot API would."""
    text = "" if text is None else str(text)
    match str(parse_mode or "").lower():
        case "":
            found = checked(text, entities or [])
        case "html":
            text, found = from_html(text)
        case "markdown" | "markdownv2":
            raise Refused("Not Implemented: the stand-in has no rules for Markdown", 501)
        case _:
            raise Refused("Bad Request: unsupported parse_mode")
    # Telegram 2.2: text 1-4096 and caption at most 1024 after entity parsing
    if utf16(text) > limit:
        raise Refused(f"Bad Request: {what} is too long")
    return text, found


def checked(text: str, entities: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Telegram 2.1: entity offset and length are in UTF-16 units, within the text and not inside a symbol."""
    borders, total = {0}, 0
    for character in text:
        total += utf16(character)
        borders.add(total)
    for entity in entities:
        if not isinstance(entity, dict) or entity.get("type") not in ENTITIES:
            raise Refused("Bad Request: can't parse entities: unsupported entity type")
        start, length = entity.get("offset"), entity.get("length")
        if not isinstance(start, int) or not isinstance(length, int) or start < 0 or length <= 0:
            raise Refused("Bad Request: can't parse entities: wrong offset or length")
        if start + length > total:
            raise Refused(
                f"Bad Request: entity beginning at UTF-16 offset {start} ends after the end of the text at "
                f"UTF-16 offset {total}"
            )
        if start not in borders or start + length not in borders:
            raise Refused(f"Bad Request: entity beginning at UTF-16 offset {start} ends in a middle of a UTF-16 symbol")
        if entity["type"] == "text_link" and not entity.get("url"):
            raise Refused("Bad Request: can't parse entities: text_link without url")
    return entities


def from_html(source: str) -> tuple[str, list[dict[str, Any]]]:
    """Text and entities of Telegram's HTML; Refused with `can't parse entities: … at byte offset N`."""
    text: list[str] = []
    units, place = 0, 0
    opened: list[tuple[str, int, dict[str, Any]]] = []
    found: list[dict[str, Any]] = []

    def add(piece: str) -> None:
        nonlocal units
        text.append(piece)
        units += utf16(piece)

    while place < len(source):
        character = source[place]
        if character == "&" and (hit := _CHARACTER.match(source, place)):
            add(_NAMED[hit[1]] if hit[1] else chr(int(hit[2]) if hit[2] else int(hit[3], 16)))
            place = hit.end()
        elif character != "<":
            add(character)
            place += 1
        else:
            tag = _TAG.match(source, place)
            at = len(source[:place].encode("utf-8", "surrogatepass"))
            if tag is None:
                rest = re.match(r"</?([^\s>/]*)", source[place:])
                name = rest[1] if rest else ""
                raise _unparsable(f'Unsupported start tag "{name}" at byte offset {at}')
            name = tag[2].lower()
            if tag[1]:
                found += _closed(opened, name, units, at)
            else:
                opened.append((name, units, _opened(name, tag[3], at)))
            place = tag.end()
    if opened:
        end = len(source.encode("utf-8", "surrogatepass"))
        raise _unparsable(f'Can\'t find end tag corresponding to start tag "{opened[-1][0]}" at byte offset {end}')
    return "".join(text), sorted(found, key=lambda one: (one["offset"], -one["length"]))


def _opened(name: str, attributes: str, at: int) -> dict[str, Any]:
    given = {hit[1].lower(): hit[2] or hit[3] or hit[4] or "" for hit in _ATTRIBUTE.finditer(attributes)}
    if name not in TAGS or (name == "span" and given.get("class") != "tg-spoiler"):
        raise _unparsable(f'Unsupported start tag "{name}" at byte offset {at}')
    if name == "blockquote" and "expandable" in given:
        return {"type": "expandable_blockquote"}
    if name == "a":
        return {"type": "text_link", "url": given.get("href", "")}
    if name == "code" and given.get("class", "").startswith("language-"):
        return {"type": "code", "language": given["class"].removeprefix("language-")}
    return {"type": TAGS[name]}


def _closed(opened: list[tuple[str, int, dict[str, Any]]], name: str, units: int, at: int) -> list[dict[str, Any]]:
    if not opened:
        raise _unparsable(f"Unexpected end tag at byte offset {at}")
    expected, start, entity = opened.pop()
    if expected != name:
        raise _unparsable(f'Unmatched end tag at byte offset {at}, expected "</{expected}>", found "</{name}>"')
    if units == start or (entity["type"] == "text_link" and not entity["url"]):
        return []
    return [{**entity, "offset": start, "length": units - start}]


def _unparsable(reason: str) -> Refused:
    return Refused(f"Bad Request: can't parse entities: {reason}")
