"""Every payload file through the front door: what docs/events.md says of it is what comes of it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from gateway import kinds
from tests.story import payloads
from tests.story.payloads import Came

# How many bubbles each leads to; what is not named leads to none.
ANSWERS = {
    "line/01_text_user": 1,
    "line/02_text_thai_emoji": 1,
    "line/03_text_group_mention_self": 1,
    "line/08_text_redelivery": 1,
    "line/10_image_user": 1,
    "line/11_image_set_two_events_out_of_order": 1,
    "line/12_image_external": 1,
    "line/13_video": 1,
    "line/14_audio": 1,
    "line/15_file_thai_name": 1,
    "line/16_location": 1,
    "line/17_location_no_title_int_coords": 1,
    "line/18_sticker": 1,
    "line/22_follow_new": 1,
    "line/23_follow_unblocked": 1,
    "line/25_join_group": 1,
    "line/29_postback_simple": 1,
    "line/30_postback_datetime": 1,
    "line/44_batch_mixed_users": 2,
    "line/edge_batch_one_bad_event": 1,
    "line/edge_extra_fields_everywhere": 1,
    "line/edge_unknown_message_type": 1,
    "line/edge_unknown_mode": 1,
    "line/edge_unknown_sticker_resource_type": 1,
    "telegram/01_message_text_thai": 1,
    "telegram/02_start_deeplink": 1,
    "telegram/03_group_command": 1,
    "telegram/04_group_mention_utf16": 1,
    "telegram/06_reply_to_bot_with_quote": 1,
    "telegram/08_photo_caption": 1,
    "telegram/10_album_part2": 1,
    "telegram/11_voice": 1,
    "telegram/12_document_big": 1,
    "telegram/13_video": 1,
    "telegram/14_sticker": 1,
    "telegram/15_location": 1,
    "telegram/16_contact": 1,
    "telegram/20_callback_query": 1,
    "telegram/21_callback_inaccessible_message": 1,
    "telegram/26_my_chat_member_added_to_group": 1,
    "telegram/34_business_message": 1,
    "telegram/42_forwarded_hidden_user": 1,
    "telegram/43_rich_message": 1,
    "telegram/edge_extra_fields": 1,
    "telegram/edge_sticker_unknown_type": 1,
    "telegram/edge_unknown_entity_type": 1,
}
# Whether a quote is of the bot's own words shows only where the history is: at the door nothing is counted.
QUOTES = {"line/07_text_quote", "line/19_sticker_message_text"}


async def test_each_payload_leads_to_what_the_page_says(tmp_path: Path, redis_url: str) -> None:
    came = await payloads.everything(tmp_path, redis_url)
    assert [one.file for one in came] == payloads.files()
    assert {one.file: len(one.shown) for one in came if one.shown} == ANSWERS
    said = payloads.documented()
    differing = [one for one in came if not agrees(one, [said[one.platform][row] for row in one.rows])]
    assert payloads.table(differing).count("\n") == 2, payloads.table(differing)


def agrees(one: Came, fates: list[str]) -> bool:
    """Whether it is answered, remembered and counted as the page says of what is in it."""
    passed_over = Counter(
        row.removeprefix("message: ") for row, fate in zip(one.rows, fates, strict=True) if fate == "counted"
    )
    answered = bool(one.shown) or one.file == payloads.HALF
    kept = set(fates) & {"answered", "remembered"}
    return (
        answered == ("answered" in fates)
        and (bool(one.kept) or not {"remembered"} & set(fates))
        and (not one.kept or bool(kept))
        and (one.counted == passed_over or one.file in QUOTES)
        and one.acknowledged == one.rows.count("callback_query")
    )


def test_the_pages_rows_are_those_of_the_code() -> None:
    rows = {"line": dict(kinds.line_rows()), "telegram": dict(kinds.telegram_rows())}
    coded = {platform: {row: str(one.fate) for row, one in of.items()} for platform, of in rows.items()}
    assert payloads.documented() == {of: {**said, kinds.NOT_FOR_US: "counted"} for of, said in coded.items()}
