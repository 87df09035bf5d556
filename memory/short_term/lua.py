"""The session's part of every Lua script that touches one, and what its arguments look like.

The inbox writes the session in its own script when a turn is finished; both use this text, so that there is one rule
for who may write. A script prepends SESSION and calls:

    session_rev(key)                       the stored rev, 0 for nothing (or something broken)
    session_put(key, value, px)            SET with PX, or without for px = 0
    session_mark(index, member, score)     notes when it is over, for clean-up
"""

from __future__ import annotations

import json
import zlib
from functools import lru_cache

from memory import keys
from memory.keys import ConversationRef
from memory.models import ShortTermMemory

SESSION = """
local function session_rev(key)
  return tonumber(string.match(redis.call('GETRANGE', key, 0, 31), '^{"rev":(%d+)')) or 0
end
local function session_put(key, value, px)
  if tonumber(px) > 0 then redis.call('SET', key, value, 'PX', px) else redis.call('SET', key, value) end
end
local function session_mark(index, member, score)
  redis.call('ZADD', index, score, member)
end
"""

INDEX = keys.shared("i", "sessions")  # sorted set: member → when the session is over, milliseconds since 1970
# On a cluster that lies in so many parts, each in a slot of its own. Their number is no setting: a mark outlives
# whoever wrote it, and has to be found again.
PARTS = 64
INDEXES = tuple(f"{INDEX}:{{{part}}}" for part in range(PARTS))

SAVE = (
    SESSION
    + """
if session_rev(KEYS[1]) ~= tonumber(ARGV[1]) then return 0 end
session_put(KEYS[1], ARGV[2], ARGV[3])
if KEYS[2] then session_mark(KEYS[2], ARGV[4], ARGV[5]) end
return 1
"""
)

DROP = (
    SESSION
    + """
if redis.call('EXISTS', KEYS[1]) == 0 then return -1 end
if session_rev(KEYS[1]) ~= tonumber(ARGV[1]) then return 0 end
redis.call('DEL', KEYS[1])
return 1
"""
)

# ARGV: member, score, … as they were when they were read.
UNMARK = """
for i = 1, #ARGV, 2 do
  if redis.call('ZSCORE', KEYS[1], ARGV[i]) == ARGV[i + 1] then redis.call('ZREM', KEYS[1], ARGV[i]) end
end
return 1
"""

SET_ASIDE = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('RENAME', KEYS[1], KEYS[2])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return 1
"""


@lru_cache(4096)
def member(ref: ConversationRef) -> str:
    """The conversation in the index; `conversation_of` reads it back. One conversation, one spelling."""
    return json.dumps([ref.tenant, ref.user, keys.agent_name(ref.agent), ref.conversation], separators=(",", ":"))


def index_of(member: str | bytes) -> str:
    """Where a member's mark is on a cluster."""
    return INDEXES[zlib.crc32(member.encode() if isinstance(member, str) else member) % PARTS]


def conversation_of(raw: bytes | str) -> ConversationRef:
    return ConversationRef(*json.loads(raw))


def score(session: ShortTermMemory) -> str:
    """When it is over, in milliseconds; `+inf` for a session that never ends by idleness."""
    return f"{session.expires_at.timestamp() * 1000:.0f}" if session.expires_at else "+inf"
