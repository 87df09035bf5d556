"""What becomes of each kind of event and update: the one place where that is decided.

`docs/events.md` is made of these tables, and a test holds it to them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from gateway.messages import Kind


class Fate(StrEnum):
    ANSWERED = "answered"
    REMEMBERED = "remembered"  # changes what is kept, and leads to no answer
    COUNTED = "counted"  # leads to nothing; `chatchat_events_passed_over_total` has its name


@dataclass(frozen=True, slots=True)
class Decision:
    fate: Fate
    what: str


_A, _R, _C = Fate.ANSWERED, Fate.REMEMBERED, Fate.COUNTED

KINDS: dict[Kind, Decision] = {
    Kind.TEXT: Decision(_A, "answered; several that come close together are answered together"),
    Kind.STICKER: Decision(_A, "answered by what it means: its keywords or its emoji"),
    Kind.IMAGE: Decision(
        _A, "fetched and kept; shown to a model that can see, else answered as a photo; an album once"
    ),
    Kind.VIDEO: Decision(_A, "fetched and kept; answered as a video"),
    Kind.AUDIO: Decision(
        _A, "fetched and kept; answered by its words where it can be transcribed, else as a recording"
    ),
    Kind.FILE: Decision(_A, "fetched and kept; answered as a file, by its name"),
    Kind.LOCATION: Decision(_A, "answered by its name, address and coordinates"),
    Kind.CONTACT: Decision(_A, "answered by name and number; another person's never becomes the writer's own"),
    Kind.POSTBACK: Decision(_A, "acknowledged at once, and answered by its data and what was picked"),
    Kind.FOLLOW: Decision(_A, "welcomed; reachable again; what came with /start is kept in the session"),
    Kind.UNFOLLOW: Decision(_R, "unreachable from now on: nothing is pushed there, which would cost quota"),
    Kind.EDITED: Decision(_R, "the history has the new text and keeps the old one; answered only if not answered yet"),
    Kind.UNSEND: Decision(
        _R, "its text is removed from session, transcript, events, attributes, summary and the bot's answers"
    ),
    Kind.OTHER: Decision(_A, "a customer's message of a kind that is new to us: answered, with a wish for words"),
    Kind.NOTICE: Decision(_A, "the bot's own: what staff are told in their chat"),
    Kind.STAFF_REPLY: Decision(_A, "the bot's own: what staff answered, passed on to the customer"),
}

LINE_MESSAGES = {
    "text": Kind.TEXT,
    "sticker": Kind.STICKER,
    "image": Kind.IMAGE,
    "video": Kind.VIDEO,
    "audio": Kind.AUDIO,
    "file": Kind.FILE,
    "location": Kind.LOCATION,
}
LINE_EVENTS = {
    "messageEdited": Kind.EDITED,
    "unsend": Kind.UNSEND,
    "follow": Kind.FOLLOW,
    "join": Kind.FOLLOW,
    "unfollow": Kind.UNFOLLOW,
    "leave": Kind.UNFOLLOW,
    "postback": Kind.POSTBACK,
}
LINE_COUNTED = {
    "memberJoined": "a group's members come without a word to the bot; it greets nobody there",
    "memberLeft": "nobody to answer",
    "richMenuSwitch": "a menu's tab was changed: nothing was said",
    "videoPlayComplete": "nothing was said",
    "beacon": "nothing was said",
    "accountLink": "no accounts are linked here",
    "membership": "no memberships are sold here",
    "module": "for makers of modules",
    "activated": "for makers of modules",
    "deactivated": "for makers of modules",
    "botSuspended": "for makers of modules",
    "botResumed": "for makers of modules",
    "delivery": "a notice about a message by telephone number",
    "standby": "another module owns the chat: only a block and an unsend are heard",
    "verify": "the console's test",
    "no_source": "nobody knows where to answer",
    "unknown": "an event that is new to us",
}

# The first that a message has is its kind: an animation comes with a document, a venue with a location.
TELEGRAM_CONTENT = (
    ("photo", Kind.IMAGE),
    ("video", Kind.VIDEO),
    ("video_note", Kind.VIDEO),
    ("animation", Kind.VIDEO),
    ("live_photo", Kind.IMAGE),
    ("voice", Kind.AUDIO),
    ("audio", Kind.AUDIO),
    ("document", Kind.FILE),
    ("sticker", Kind.STICKER),
    ("contact", Kind.CONTACT),
    ("venue", Kind.LOCATION),
    ("location", Kind.LOCATION),
)
TELEGRAM_UPDATES = {
    "message": Kind.TEXT,
    "message: /start": Kind.FOLLOW,
    "message: of a kind that is new to us": Kind.OTHER,
    "business_message": Kind.TEXT,
    "edited_message": Kind.EDITED,
    "edited_business_message": Kind.EDITED,
    "deleted_business_messages": Kind.UNSEND,
    "callback_query": Kind.POSTBACK,
    "my_chat_member: added to a group": Kind.FOLLOW,
    "my_chat_member: blocked or thrown out": Kind.UNFOLLOW,
}
TELEGRAM_COUNTED = {
    "channel_post": "a channel's readers don't speak to the bot",
    "edited_channel_post": "a channel's readers don't speak to the bot",
    "guest_message": "the bot is no member there",
    "business_connection": "the owner's settings: each message brings what is needed",
    "message_reaction": "a sign that wants no answer",
    "message_reaction_count": "a sign that wants no answer",
    "inline_query": "the bot offers nothing inline",
    "chosen_inline_result": "the bot offers nothing inline",
    "shipping_query": "nothing is sold here",
    "pre_checkout_query": "nothing is sold here",
    "purchased_paid_media": "nothing is sold here",
    "poll": "the bot asks no polls",
    "poll_answer": "the bot asks no polls",
    "chat_member": "a group's members come and go without a word to the bot",
    "chat_join_request": "for a group's admins",
    "chat_boost": "nothing was said",
    "removed_chat_boost": "nothing was said",
    "managed_bot": "for other bots",
    "subscription": "nothing is sold here",
    "stopped_message_generation": "drafts bear no button that stops them",
    "my_chat_member": "the bot's rights in a group changed",
    "other_bots_command": "meant for another bot",
    "bot": "another bot: two that answer each other never stop",
    "automatic_forward": "a channel's post in the group that discusses it",
    "business_owner": "the owner's own words to the customer",
    "edited_without_text": "a live location that moves, a changed photo",
    "callback_without_chat": "a button below an inline message, which the bot never sends",
    "no_chat": "nobody knows where to answer",
    "unknown": "an update that is new to us",
}
# Notices of Telegram's in a chat: nobody said anything. Any other content that we don't know is a person's message.
TELEGRAM_NOTICES = (  # noqa: SIM905 (one a line would fill two pages)
    "new_chat_members left_chat_member chat_owner_left chat_owner_changed new_chat_title new_chat_photo "
    "delete_chat_photo group_chat_created supergroup_chat_created channel_chat_created "
    "message_auto_delete_timer_changed migrate_to_chat_id migrate_from_chat_id pinned_message invoice "
    "successful_payment refunded_payment users_shared user_shared chat_shared gift unique_gift gift_upgrade_sent "
    "connected_website write_access_allowed passport_data proximity_alert_triggered boost_added chat_background_set "
    "checklist_tasks_done checklist_tasks_added direct_message_price_changed forum_topic_created forum_topic_edited "
    "forum_topic_closed forum_topic_reopened general_forum_topic_hidden general_forum_topic_unhidden giveaway_created "
    "giveaway giveaway_winners giveaway_completed managed_bot_created paid_message_price_changed poll_option_added "
    "poll_option_deleted suggested_post_approved suggested_post_approval_failed suggested_post_declined "
    "suggested_post_paid suggested_post_refunded video_chat_scheduled video_chat_started video_chat_ended "
    "video_chat_participants_invited community_chat_added community_chat_removed community_chat_joined"
).split()

NOT_FOR_US = "not for us"  # a group's talk among itself

Row = tuple[str, Decision]


def line_rows() -> Iterator[Row]:
    for name, kind in LINE_MESSAGES.items():
        yield f"message: {name}", KINDS[kind]
    yield "message: of a kind that is new to us", KINDS[Kind.OTHER]
    for name, kind in LINE_EVENTS.items():
        yield name, KINDS[kind]
    for name, why in LINE_COUNTED.items():
        yield name, Decision(Fate.COUNTED, why)


def telegram_rows() -> Iterator[Row]:
    for name, kind in TELEGRAM_UPDATES.items():
        yield name, KINDS[kind]
    for name, kind in TELEGRAM_CONTENT:
        yield f"message: {name}", KINDS[kind]
    yield (
        "my_chat_member: unblocked",
        Decision(Fate.REMEMBERED, "reachable again; the /start that comes with it is answered"),
    )
    for name, why in TELEGRAM_COUNTED.items():
        yield name, Decision(Fate.COUNTED, why)
    for name in TELEGRAM_NOTICES:
        yield f"message: {name}", Decision(Fate.COUNTED, "a notice of the platform's: nobody said anything")


HEAD = """# What becomes of each event

Made from `gateway/kinds.py`; `python -m gateway.kinds` prints it anew.

*answered*: leads to one answer. *remembered*: changes what is kept, and leads to no answer. *counted*: leads to nothing
but a count in `chatchat_events_passed_over_total`, under its name.

In a group the bot answers who mentions it, replies to it, quotes it or gives it a command (`behaviour.groups:
mention`), everybody (`always`) or nobody (`never`); what the group says otherwise is counted as "not for us" and not
kept. A group's conversation is a session of its own, and so is each topic of it and each business connection. What a
member says to the bot there is remembered in the member's own memory, if the platform tells who it was; the group's
prompt holds nothing of any member's memory. Anonymous admins and people who write as a channel are answered too.

Albums and image sets are one message, in their own order. A forwarded message is answered, but does not count as the
customer's own words. What a message quotes is given to the model beside it. Of a picture, file or recording without
words nothing is understood or remembered but that it was sent: "[photo]" is our word for it, not the customer's.

LINE does not say in a group's events what its members are called: that is asked for, at most once a member and day, and
never waited for longer than a second; without a name it is "member" and the end of the id.

**Taken back.** In the bot's answers to the session's messages "…" stands for what they repeat of it: numbers of four
digits and more, a name or whatever else it told of the person, any run of twelve characters. What stands on the
customer's screen already is theirs. Once the session has ended the answers stay as they are.

**Buttons.** The agent's `suggestions` are shown with a welcome and where the bot did not understand, not below every
answer. Presses have a limit of their own beside `rate_limit_per_minute`, just as high: they take nothing from what may
be typed. The press that fetches an answer that waits is never refused. (LINE's quick replies come as typed words.)

**Pictures.** A model is told the pictures and files of the shop's answers that may fit, and shows one by repeating its
Markdown. Of what a model writes only pictures at addresses that stand in the shop's answers or instructions, or on
its `image_hosts`, are shown; others are links, and links lead nowhere but to hosts that the shop itself named.

**Looks.** Telegram gets text with entities. LINE gets plain text, which can be copied, quoted and read aloud, and no
Flex: headings begin with ■, a table is a line a row. `python -m tests.story.screens answer.md > screens.html` draws
both.

`python -m tests.story.payloads` sends a body of each kind through the front door and prints what came of it.
"""


def page() -> str:
    """docs/events.md."""
    parts = [HEAD]
    for title, rows in (("LINE", line_rows()), ("Telegram", telegram_rows())):
        parts.append(f"## {title}\n\n| event | becomes | what happens |\n| --- | --- | --- |")
        parts[-1] += "".join(f"\n| {name} | {decision.fate} | {decision.what} |" for name, decision in rows) + "\n"
    return "\n".join(parts)


if __name__ == "__main__":
    sys.stdout.write(page())
