"""What LINE refuses in a message object. Each rule names its section in the platform's documentation."""

from __future__ import annotations

import re
from typing import Any

from tests.standins.model import utf16

Details = list[dict[str, str]]

TYPES = ("text", "textV2", "sticker", "image", "video", "audio", "location", "imagemap", "template", "flex", "coupon")
_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([0-9A-Za-z_]{1,20})\}|[{}]")
_MARK = re.compile(r"[\u0300-\u036f\u0e31\u0e33-\u0e3a\u0e47-\u0e4e\u200d\ufe0f\U0001f3fb-\U0001f3ff]")


def graphemes(text: str) -> int:
    """Characters as a reader counts them, near enough for a label: marks and joiners belong to what they follow."""
    return len(_MARK.sub("", re.sub("\u200d.", "", text, flags=re.DOTALL)))


def faults_of_messages(messages: Any) -> Details:
    """The `details` of LINE's 400, empty when all is well."""
    # LINE 1.3: 1-5 message objects per call
    if not isinstance(messages, list) or not 1 <= len(messages) <= 5:
        return [{"message": "Size must be between 1 and 5", "property": "messages"}]
    found: Details = []
    for place, message in enumerate(messages):
        where = f"messages[{place}]"
        if not isinstance(message, dict) or message.get("type") not in TYPES:
            kinds = ", ".join(TYPES)
            found.append({"message": f"Must be one of the following values: [{kinds}]", "property": f"{where}.type"})
            continue
        found += _of_text(message, where) if message["type"] in ("text", "textV2") else _of_other(message, where)
        found += _of_quick_reply(message.get("quickReply"), f"{where}.quickReply")
    return found


def _of_text(message: dict[str, Any], where: str) -> Details:
    text = message.get("text")
    if not isinstance(text, str) or not text.strip():
        return [{"message": "May not be empty", "property": f"{where}.text"}]
    # LINE 1.3: text at most 5000 UTF-16 units, the same for textV2
    if utf16(text) > 5000:
        return [{"message": "Length must be between 0 and 5000", "property": f"{where}.text"}]
    # LINE 1.3: textV2: {key} placeholders, literal braces doubled; stray braces give 400
    if message["type"] == "textV2":
        known = message.get("substitution") or {}
        for hit in _PLACEHOLDER.finditer(text):
            if hit[0] in ("{", "}") or (hit[1] is not None and hit[1] not in known):
                return [{"message": "Invalid placeholder", "property": f"{where}.text"}]
    return []


def _of_other(message: dict[str, Any], where: str) -> Details:
    kind = message["type"]
    needed = {
        "sticker": ("packageId", "stickerId"),
        "image": ("originalContentUrl", "previewImageUrl"),
        "video": ("originalContentUrl", "previewImageUrl"),
        "audio": ("originalContentUrl", "duration"),
        "location": ("title", "address", "latitude", "longitude"),
        "flex": ("altText", "contents"),
        "template": ("altText", "template"),
    }.get(kind, ())
    found: Details = [
        {"message": "May not be empty", "property": f"{where}.{name}"}
        for name in needed
        if message.get(name) in (None, "")
    ]
    # LINE 1.3: media by https URL
    for name in ("originalContentUrl", "previewImageUrl"):
        if name in needed and message.get(name) and not str(message[name]).startswith("https://"):
            found.append({"message": "invalid uri scheme", "property": f"{where}.{name}"})
        # LINE 1.3: an address has at most 2000 characters
        if name in needed and len(str(message.get(name) or "")) > 2000:
            found.append({"message": "Length must be between 0 and 2000", "property": f"{where}.{name}"})
    # LINE 1.3: a sticker is named by two numbers
    if kind == "sticker" and not all(str(message.get(name, "")).isdecimal() for name in needed):
        found.append({"message": "Invalid sticker", "property": f"{where}.stickerId"})
    # LINE 1.3: flex altText at most 1500
    if kind == "flex" and len(str(message.get("altText", ""))) > 1500:
        found.append({"message": "Length must be between 1 and 1500", "property": f"{where}.altText"})
    return found


def _of_quick_reply(quick: Any, where: str) -> Details:
    if quick is None:
        return []
    items = quick.get("items") if isinstance(quick, dict) else None
    # LINE 1.3: quick replies at most 13
    if not isinstance(items, list) or not 1 <= len(items) <= 13:
        return [{"message": "Size must be between 1 and 13", "property": f"{where}.items"}]
    found: Details = []
    for place, item in enumerate(items):
        action = item.get("action") if isinstance(item, dict) else None
        inside = f"{where}.items[{place}].action"
        if not isinstance(action, dict) or not action.get("type"):
            found.append({"message": "May not be empty", "property": inside})
            continue
        # LINE 1.3: quick-reply label at most 20 graphemes
        if not 1 <= graphemes(str(action.get("label", ""))) <= 20:
            found.append({"message": "Length must be between 1 and 20", "property": f"{inside}.label"})
        if action["type"] == "message" and not 1 <= graphemes(str(action.get("text", ""))) <= 300:
            found.append({"message": "Length must be between 1 and 300", "property": f"{inside}.text"})
        # LINE 1.2: postback data at most 300
        if action["type"] == "postback" and not 1 <= len(str(action.get("data", ""))) <= 300:
            found.append({"message": "Length must be between 1 and 300", "property": f"{inside}.data"})
    return found
