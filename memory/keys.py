"""The only maker of Redis keys and file paths. Tenant first, every part escaped, none optional.

Letters, digits and `. _ - : @ +` stand as they are; a leading `.` or `_` and everything else is percent-encoded (UTF-8,
lone surrogates included); a name over 200 bytes becomes its first 120, `~` and its SHA-256 in hex. `~` itself is always
encoded, so a shortened name never meets a plain one. Equal keys if and only if equal parts.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

DEFAULT_AGENT = "default"
MAIN = "main"
TENANT_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}\Z")
CONVERSATION_ID = re.compile(r"[A-Za-z0-9_-]{1,128}\Z")

_SAFE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-:@+")
_PLAIN = re.compile(r"[A-Za-z0-9\-:@+][A-Za-z0-9._\-:@+]{0,199}\Z")  # needs no escaping: nearly every id
_MAX, _KEPT = 200, 120
_THE_TENANT = "_tenant"
GROUPS = ("line:group:", "telegram:group:")  # how a group's canonical id begins


class InvalidId(ValueError):
    """An id is empty or not of the allowed form."""


def is_group(user: str) -> bool:
    """Whether a canonical id is a group's: of two platforms alone, as programs choose the names of their users."""
    return user.startswith(GROUPS)


class ConversationRef(NamedTuple):
    """Names one conversation: the unit that is kept in order and claimed."""

    tenant: str
    user: str
    agent: str = DEFAULT_AGENT
    conversation: str = MAIN


def escape_once(part: str) -> str:
    """One part of a key or one file name. Raises InvalidId for an empty part. `escape` holds what it gives: what is
    asked for once would take the places of what is asked for again."""
    if _PLAIN.match(part):
        return part
    if not part:
        raise InvalidId("an id is empty: every part of a key or path must be given")
    out = []
    for position, byte in enumerate(part.encode("utf-8", "surrogatepass")):
        plain = byte in _SAFE and not (position == 0 and byte in b"._")
        out.append(chr(byte) if plain else f"%{byte:02X}")
    name = "".join(out)
    if len(name) > _MAX:
        name = f"{name[:_KEPT]}~{hashlib.sha256(name.encode()).hexdigest()}"
    return name


escape = lru_cache(8192)(escape_once)


def unescape(name: str) -> str | None:
    """The part that `escape` made this name of; None for a shortened one, which does not hold it whole, and for one
    that it never makes."""
    if "~" in name:
        return None
    try:
        return unquote_to_bytes(name).decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return None


@lru_cache(4096)
def check_tenant(tenant: str) -> str:
    """The tenant's id, unchanged. Raises InvalidId for anything that could not be a tenant file's name."""
    if not TENANT_ID.match(tenant):
        raise InvalidId(
            f"tenant id {tenant[:80]!r} is not allowed: use 1 to 64 of a-z, 0-9, _ and -, "
            "beginning with a letter or digit"
        )
    return tenant


def agent_name(agent: str) -> str:
    """`general` is another name for `default`."""
    return DEFAULT_AGENT if agent == "general" else agent


# -- Redis -----------------------------------------------------------------------------------------------------------


def main_session(tenant: str, user: str) -> str:
    """`session` of a person's main conversation with the default agent."""
    return f"sm:{check_tenant(tenant)}:{escape(user)}"


@lru_cache(4096)
def session(ref: ConversationRef) -> str:
    """The session's key, which is also the conversation's name in the inbox."""
    base = main_session(ref.tenant, ref.user)
    if agent_name(ref.agent) == DEFAULT_AGENT and ref.conversation == MAIN:
        return base
    return f"{base}/{escape(agent_name(ref.agent))}/{escape(ref.conversation)}"


@lru_cache(4096)
def session_user(session_key: str) -> str | None:
    """Whose conversation a session's key names; None where it does not hold the id whole."""
    return unescape(session_key.split(":", 2)[2].partition("/")[0])


def beside(session_key: str, kind: str, *rest: str) -> str:
    """A key in the same cluster slot as the session: its tag is the session's key (which can hold no brace)."""
    return ":".join([f"cc:{kind}:{{{session_key}}}", *map(escape, rest)])


def shared(kind: str, *rest: str) -> str:
    """A key of ours that belongs to no single conversation."""
    return ":".join([f"cc:{kind}", *map(escape, rest)])


# -- Files -----------------------------------------------------------------------------------------------------------


def longterm_place(base: Path | str, tenant: str, user: str) -> tuple[str, str]:
    """The folder of a person's long-term files and the stem of their names; with the user id "" of the tenant's own.
    As plain text: pathlib would cost more than the look at them."""
    return f"{base}/{check_tenant(tenant)}", escape(user) if user else _THE_TENANT


def longterm_file(base: Path, tenant: str, user: str) -> Path:
    """`<base>/<tenant>/<user>.json`; `base` is `DATA_DIR/longterm`."""
    return base / check_tenant(tenant) / f"{escape(user)}.json"


def tenant_file(base: Path, tenant: str) -> Path:
    """The tenant's own facts and procedures. No user's file has this name: a leading `_` of a user id is encoded."""
    return base / check_tenant(tenant) / f"{_THE_TENANT}.json"


def transcript_place(base: Path | str, tenant: str, user: str) -> tuple[str, str]:
    """The folder of `transcript_dir` in two parts, as plain text: the tenant's, and the person's name in it."""
    return f"{base}/{check_tenant(tenant)}", escape(user)


def transcript_dir(base: Path, tenant: str, user: str) -> Path:
    """`<base>/<tenant>/<user>/`; `base` is `DATA_DIR/transcripts`."""
    return base / check_tenant(tenant) / escape(user)


def archive_file(base: Path, tenant: str, user: str) -> Path:
    """What pruning removed of a person; `base` is `DATA_DIR/archive`."""
    return base / check_tenant(tenant) / f"{escape(user)}.jsonl"


def index_file(base: Path, tenant: str, ending: str = "sqlite") -> Path:
    """`<base>/<tenant>.sqlite`, derived; `base` is `DATA_DIR/index`. Other endings: what belongs to it."""
    return base / f"{check_tenant(tenant)}.{ending}"


def words_file(base: Path | str, tenant: str, user: str) -> str:
    """`<base>/<tenant>/<user>.words`, derived, as plain text; `base` is `DATA_DIR/index`."""
    return f"{base}/{check_tenant(tenant)}/{escape(user) if user else _THE_TENANT}.words"


def changes_file(base: Path | str, tenant: str) -> str:
    """`index_file` with the ending `changed`, as plain text: each save appends to it."""
    return f"{base}/{check_tenant(tenant)}.changed"


def media_dir(base: Path, tenant: str, user: str) -> Path:
    """`<base>/<tenant>/<user>/`; `base` is `DATA_DIR/media`."""
    return base / check_tenant(tenant) / escape(user)


def understanding_dir(base: Path, tenant: str) -> Path:
    """What the shop's own people corrected, and what was learned of it; `base` is `DATA_DIR/understanding`."""
    return base / check_tenant(tenant)


def conversation_file(base: Path, tenant: str, conversation: str) -> Path:
    """Who opened a conversation, and its name; `base` is `DATA_DIR/conversations`."""
    return base / check_tenant(tenant) / f"{escape(conversation)}.json"


def knowledge_dir(base: Path, tenant: str) -> Path:
    """What the shop wrote down for its bot; `base` is `CONFIG_DIR/knowledge`."""
    return base / check_tenant(tenant)


def list_file(base: Path, tenant: str) -> Path:
    """A tenant's API keys that were made here, whom it blocked, or what nobody could answer; `base` is `DATA_DIR/keys`,
    `DATA_DIR/blocked` or `DATA_DIR/unanswered`."""
    return base / f"{check_tenant(tenant)}.json"


def audit_file(base: Path, tenant: str, month: str) -> Path:
    """Who did what with whose data; `base` is `DATA_DIR/audit`."""
    return base / check_tenant(tenant) / f"{escape(month)}.jsonl"


def shared_lock(base: Path, tenant: str) -> tuple[Path, str]:
    """For `memory.file_locks`, where one lock does for all of a tenant's files below `base`: beside the area itself,
    whose folders hold files of people alone."""
    return base.parent, f"{base.name} {check_tenant(tenant)}"
