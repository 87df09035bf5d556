"""What a person said in groups, which keep it under their own ids: found, and taken out, when they are forgotten."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from memory.amendments import Amendments
from memory.curation import Curation
from memory.keys import ConversationRef, is_group
from memory.protocols import LongTerm, Sessions, Transcripts
from memory.remember import Remember
from memory.talks import Talks


def of_member(lines: Sequence[Mapping[str, Any]], ids: Collection[str]) -> set[str]:
    """The ids of what these wrote, and of what the bot answered next."""
    found, asked = set(), False
    for line in lines:
        theirs = line.get("role") == "user" and (line.get("metadata") or {}).get("sender") in ids
        if "message_id" in line and (theirs or (asked and line.get("role") == "bot")):
            found.add(str(line["message_id"]))
        asked = theirs or (asked and line.get("role") != "bot")
    return found


class Members:
    """Raises MemoryFault where a store can't be reached; to be asked for again then."""

    def __init__(
        self,
        longterm: LongTerm,
        sessions: Sessions,
        transcripts: Transcripts,
        remember: Remember,
        talks: Talks,
        curation: Curation,
        amendments: Amendments,
    ) -> None:
        self._longterm = longterm
        self._sessions = sessions
        self._transcripts = transcripts
        self._remember = remember
        self._talks = talks
        self._curation = curation
        self._amendments = amendments

    async def forget(self, tenant: str, ids: Collection[str]) -> dict[str, int]:
        """Removes it from the groups' sessions, transcripts and episodes; how many messages that were, by group."""
        groups = {one for one in await self._transcripts.users(tenant) if is_group(one)}
        groups |= {one async for one in self._longterm.users(tenant) if is_group(one)}
        groups |= {ref.user async for ref in self._sessions.of(tenant, None) if is_group(ref.user)}
        done = {}
        for group in sorted(groups.difference(ids)):
            by_conversation = await self._said(tenant, group, ids)
            if gone := set().union(*by_conversation.values()):
                # What was made of it first: as long as the messages are there, a repeat finds what is to be done.
                await self._remember.amend(tenant, group, gone, None, keep_gist=False)
                await self._curation.retell(tenant, group)
                for ref, messages in by_conversation.items():
                    await self._amendments.unsay(ref, messages)
                    await self._talks.remove(ref, messages)
                done[group] = len(gone)
        return done

    async def _said(self, tenant: str, group: str, ids: Collection[str]) -> dict[ConversationRef, set[str]]:
        out: dict[ConversationRef, set[str]] = {}
        spoken: dict[ConversationRef, list[Mapping[str, Any]]] = {}
        for line in await self._transcripts.everything(tenant, group):
            ref = ConversationRef(tenant, group, line.get("agent") or "default", line.get("conversation") or "main")
            spoken.setdefault(ref, []).append(line)
        for ref, lines in spoken.items():
            out.setdefault(ref, set()).update(of_member(lines, ids))
        async for ref in self._sessions.of(tenant, group):
            if (session := await self._sessions.load(ref)) is not None:
                out.setdefault(ref, set()).update(of_member([*session.carried, *session.history], ids))
        memory = await self._longterm.load(tenant, group)
        for episode in memory.episodes if memory else ():
            ref = ConversationRef(tenant, group, episode.agent, episode.conversation_id)
            out.setdefault(ref, set()).update(of_member(episode.conversation, ids))
        return out
