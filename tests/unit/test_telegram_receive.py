"""What each of Telegram's updates becomes."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.adapters.telegram import TelegramReceiver
from gateway.errors import BadSignature, NotJson
from gateway.messages import MAX_TEXT, Kind
from tests.unit.receiving import HOOK, NOW, PAYLOADS, SHOP, Row, one, payload, summary, telegram

BECOMES: dict[str, list[Row] | dict[str, int]] = {
    "01_message_text_thai": [("text", "telegram:5550001111", "สวัสดีครับ ร้านเปิดกี่โมง 🙏", True)],
    "02_start_deeplink": [("follow", "telegram:5550001111", "/start ref_TH-2026_abc", True)],
    "03_group_command": [("text", "telegram:group:-1002233445566", "/menu วันนี้", True)],
    "04_group_mention_utf16": [
        ("text", "telegram:group:-1002233445566", "👨‍👩‍👧🎉 สรุปให้หน่อย https://example.com/a?b=1", True)
    ],
    "05_text_mention": [("text", "telegram:group:-1002233445566", "Ann ดูอันนี้หน่อย", False)],
    "06_reply_to_bot_with_quote": [("text", "telegram:group:-1002233445566", "แล้วเมื่อวานล่ะ", True)],
    "07_forum_topic": [("text", "telegram:group:-1009988776655", "ในหัวข้อนี้", False)],
    "08_photo_caption": [("image", "telegram:5550001111", "เมนูนี้ราคาเท่าไหร่ **bold**", True)],
    "09_album_part1": [("image", "telegram:5550001111", "อัลบั้ม", True)],
    "10_album_part2": [("image", "telegram:5550001111", "", True)],
    "11_voice": [("audio", "telegram:5550001111", "", True)],
    "12_document_big": [("file", "telegram:5550001111", "", True)],
    "13_video": [("video", "telegram:5550001111", "", True)],
    "14_sticker": [("sticker", "telegram:5550001111", "", True)],
    "15_location": [("location", "telegram:5550001111", "", True)],
    "16_contact": [("contact", "telegram:5550001111", "", True)],
    "17_edited_message": [("edited", "telegram:5550001111", "ขอแก้เป็น 6 ที่นั่ง", True)],
    "18_channel_post": {"channel_post": 1},
    "19_edited_channel_post": {"edited_channel_post": 1},
    "20_callback_query": [("postback", "telegram:5550001111", "book:12", True)],
    "21_callback_inaccessible_message": [("postback", "telegram:group:-1002233445566", "old", True)],
    "22_callback_inline_message": {"callback_without_chat": 1},
    "23_inline_query": {"inline_query": 1},
    "24_chosen_inline_result": {"chosen_inline_result": 1},
    "25_my_chat_member_blocked": [("unfollow", "telegram:5550001111", "", True)],
    "26_my_chat_member_added_to_group": [("follow", "telegram:group:-1002233445566", "", True)],
    "27_chat_member_promoted": {"chat_member": 1},
    "28_chat_join_request": {"chat_join_request": 1},
    "29_message_reaction": {"message_reaction": 1},
    "30_message_reaction_count": {"message_reaction_count": 1},
    "31_poll": {"poll": 1},
    "32_poll_answer": {"poll_answer": 1},
    "33_business_connection": {"business_connection": 1},
    "34_business_message": [("text", "telegram:5550001111", "ส่งของวันไหนคะ", True)],
    "35_deleted_business_messages": [("unsend", "telegram:5550001111", "", True)],
    "36_guest_message": {"guest_message": 1},
    "37_migrate_to_supergroup": {"migrate_to_chat_id": 1},
    "38_new_chat_members": {"new_chat_members": 1},
    "39_left_chat_member": {"left_chat_member": 1},
    "40_anonymous_admin": [("text", "telegram:group:-1002233445566", "ประกาศจากแอดมิน", False)],
    "41_auto_forward_from_channel": {"automatic_forward": 1},
    "42_forwarded_hidden_user": [("text", "telegram:5550001111", "fwd", True)],
    "43_rich_message": [("text", "telegram:5550001111", "สวัสดี โลก", True)],
    "44_stopped_message_generation": {"stopped_message_generation": 1},
    "45_pre_checkout": {"pre_checkout_query": 1},
    "46_successful_payment": {"successful_payment": 1},
    "47_chat_boost": {"chat_boost": 1},
    "48_subscription": {"subscription": 1},
    "49_managed_bot": {"managed_bot": 1},
    "edge_extra_fields": [("text", "telegram:5550001111", "abc", True)],
    "edge_sticker_unknown_type": [("sticker", "telegram:5550001111", "", True)],
    "edge_unknown_entity_type": [("text", "telegram:5550001111", "abc", True)],
    "edge_unknown_member_status": {"my_chat_member": 1},
    "edge_unknown_reaction_type": {"message_reaction": 1},
    "edge_unknown_update_type": {"unknown": 1},
    "edge_update_without_event": {"unknown": 1},
}


def test_every_payload_is_in_the_table() -> None:
    assert sorted(BECOMES) == sorted(path.stem for path in (PAYLOADS / "telegram").glob("*.json"))


@pytest.mark.parametrize("name", BECOMES)
def test_an_update_becomes(name: str) -> None:
    assert summary(telegram((PAYLOADS / "telegram" / f"{name}.json").read_bytes())) == BECOMES[name]


def private(text: object = "hello", **fields: Any) -> dict[str, Any]:
    update: dict[str, Any] = payload("telegram/01_message_text_thai")
    update["message"] |= {"text": text, **fields}
    return update


def grouped(text: str, **fields: Any) -> dict[str, Any]:
    update: dict[str, Any] = payload("telegram/05_text_mention")
    update["message"] |= {"text": text, "entities": [], **fields}
    return update


def test_a_text_carries_all_that_the_answer_needs() -> None:
    message = one(telegram(payload("telegram/01_message_text_thai")))
    assert (message.tenant, message.channel, message.platform) == ("shop", "tg", "telegram")
    assert (message.event_id, message.chat_id, message.message_id) == ("310000001", "5550001111", "4001")
    assert (message.sender_id, message.sender_name, message.language_code) == (None, "สมชาย ใจดี", "th")
    assert (message.sent_at, message.received_at) == (1793000007.0, NOW)


@pytest.mark.parametrize("given", [None, "", "hook-secre", "hook-secret2", "ลับ", "\udcff"])
def test_a_wrong_or_missing_secret_token_is_refused(given: str | None) -> None:
    headers = {} if given is None else {"x-telegram-bot-api-secret-token": given}
    with pytest.raises(BadSignature):
        TelegramReceiver().receive(SHOP, "tg", b"{}", headers, NOW)


@pytest.mark.parametrize("channel", ["tg-polling", "line-main"])
def test_a_channel_without_a_secret_takes_nothing(channel: str) -> None:
    with pytest.raises(BadSignature):
        TelegramReceiver().receive(SHOP, channel, b"{}", {"x-telegram-bot-api-secret-token": HOOK}, NOW)


@pytest.mark.parametrize("body", [b"", b"no json", b"{", b"[" * 100_000])
def test_what_is_not_json_is_refused(body: bytes) -> None:
    with pytest.raises(NotJson):
        telegram(body)


@pytest.mark.parametrize("depth", [255, 900])
def test_an_update_without_a_number_gets_the_same_one_each_time_however_deep_it_is_nested(depth: int) -> None:
    def update(text: bytes, *, swapped: bool = False) -> bytes:
        fields = [b'"text":"%b"' % text, b'"chat":{"id":1,"type":"private"}', b'"from":{"id":1}']
        deep = b"[" * depth + b"]" * depth
        return b'{"message":{%b,"x":%b}}' % (b",".join(reversed(fields) if swapped else fields), deep)

    said = one(telegram(update(b"hi")))
    assert said.text == "hi"
    assert one(telegram(update(b"hi", swapped=True))).event_id == said.event_id
    assert one(telegram(update(b"ho"))).event_id != said.event_id


@pytest.mark.parametrize(
    "body", [b"null", b"[]", b"1", b"{}", b'{"message": 5}', b'{"message": {}}', b'{"update_id": []}']
)
def test_json_that_makes_no_sense_gives_no_messages(body: bytes) -> None:
    received = telegram(body)
    assert received.messages == ()
    assert dict(received.passed_over) == {"unknown": 1}


def test_a_lone_surrogate_becomes_a_replacement_character() -> None:
    assert one(telegram(private("a\ud800b 🙏"))).text == "a\ufffdb 🙏"


def test_an_update_without_an_id_gets_the_same_one_each_time_it_is_delivered() -> None:
    update, other = private(), private("other")
    del update["update_id"], other["update_id"]
    assert one(telegram(update)).event_id == one(telegram(update)).event_id != one(telegram(other)).event_id


def test_a_long_text_is_cut_and_says_so() -> None:
    message = one(telegram(private("ก" * 100_000)))
    assert (message.text, message.extra) == ("ก" * MAX_TEXT, {"cut": 100_000 - MAX_TEXT})


def test_start_brings_its_payload() -> None:
    with_payload = one(telegram(payload("telegram/02_start_deeplink")))
    assert (with_payload.kind, with_payload.extra) == (Kind.FOLLOW, {"start": "ref_TH-2026_abc"})
    assert (one(telegram(private("/start"))).kind, one(telegram(private("/start"))).extra) == (Kind.FOLLOW, {})
    assert one(telegram(private("/starting"))).kind is Kind.TEXT


@pytest.mark.parametrize(
    ("text", "username", "becomes"),
    [
        ("/menu", "siam_cafe_bot", [("text", "/menu", True)]),
        ("/menu@Siam_Cafe_Bot now", "siam_cafe_bot", [("text", "/menu now", True)]),
        ("/menu@other_bot", "siam_cafe_bot", []),
        ("/menu@any_bot", None, [("text", "/menu", True)]),
        ("menu", "siam_cafe_bot", [("text", "menu", False)]),
    ],
)
def test_a_command_in_a_group(text: str, username: str | None, becomes: list[tuple[str, str, bool]]) -> None:
    messages = telegram(grouped(text), username).messages
    assert [(str(message.kind), message.text, message.mentioned) for message in messages] == becomes


def mention(offset: object, length: object, **fields: Any) -> dict[str, Any]:
    return {"type": "mention", "offset": offset, "length": length, **fields}


def test_offsets_count_utf16_units() -> None:
    message = one(telegram(grouped("🎉🎉 @siam_cafe_bot /reset", entities=[mention(5, 14)])))
    assert (message.text, message.mentioned) == ("🎉🎉 /reset", True)
    message = one(telegram(grouped("@siam_cafe_bot /reset@siam_cafe_bot 🎉", entities=[mention(0, 14)])))
    assert (message.text, message.mentioned) == ("/reset 🎉", True)


def test_someone_else_s_mention_is_not_ours() -> None:
    message = one(telegram(grouped("@other_bot hi", entities=[mention(0, 10)])))
    assert (message.text, message.mentioned) == ("@other_bot hi", False)


def test_while_our_name_is_unknown_any_bot_s_name_counts() -> None:
    message = one(telegram(grouped("@siam_cafe_bot hi", entities=[mention(0, 14)]), username=None))
    assert (message.text, message.mentioned) == ("hi", True)
    assert one(telegram(grouped("@somchai_j hi", entities=[mention(0, 10)]), username=None)).mentioned is False


@pytest.mark.parametrize(
    ("offset", "length"), [(1, 14), (-1, 14), (0, 0), (0, 900), (None, 14), ("0", "14"), (True, 2)]
)
def test_odd_offsets_cut_nothing(offset: object, length: object) -> None:
    text = "🎉@siam_cafe_bot hi"
    assert one(telegram(grouped(text, entities=[mention(offset, length)]))).text == text


def test_a_text_mention_of_the_bot_speaks_to_it() -> None:
    bot = {"id": 7123456789, "is_bot": True, "first_name": "Cafe"}
    entity = {"type": "text_mention", "offset": 0, "length": 4, "user": bot}
    message = one(telegram(grouped("Cafe hi", entities=[entity])))
    assert (message.text, message.mentioned) == ("hi", True)


def test_a_topic_s_first_notice_is_not_a_reply_to_the_bot() -> None:
    update = payload("telegram/07_forum_topic")
    update["message"]["reply_to_message"]["from"] = {"id": 7123456789, "is_bot": True, "first_name": "Cafe"}
    message = one(telegram(update))
    assert (message.thread_id, message.mentioned) == ("77", False)


def test_a_thread_that_is_no_topic_is_not_kept() -> None:
    assert one(telegram(private(message_thread_id=9))).thread_id is None


def test_the_quoted_words_come_along() -> None:
    extra = one(telegram(payload("telegram/06_reply_to_bot_with_quote"))).extra
    assert extra == {"quoted_text": "12,400", "quoted_message_id": "4006"}


def test_bots_are_not_answered() -> None:
    bot = {"id": 99, "is_bot": True, "first_name": "Echo"}
    assert summary(telegram(private(**{"from": bot}))) == {"bot": 1}
    assert summary(telegram(grouped("hi", **{"from": bot}))) == {"bot": 1}


def test_a_person_who_writes_as_a_channel_is_heard() -> None:
    message = one(
        telegram(
            grouped(
                "hi",
                **{
                    "from": {"id": 136817688, "is_bot": True, "first_name": "Channel"},
                    "sender_chat": {"id": -100777, "title": "My\nchannel", "type": "channel"},
                },
            )
        )
    )
    assert (message.sender_id, message.sender_name) == ("telegram:-100777", "My channel")


def test_an_anonymous_admin_has_no_id() -> None:
    assert one(telegram(payload("telegram/40_anonymous_admin"))).sender_id is None


def test_a_business_owner_s_own_words_are_not_answered() -> None:
    update = payload("telegram/34_business_message")
    assert one(telegram(update)).business_id == "bc_Xa91"
    update["business_message"]["from"]["id"] = 6660002222
    assert summary(telegram(update)) == {"business_owner": 1}


def test_a_button_below_a_business_message_keeps_its_connection() -> None:
    update = payload("telegram/20_callback_query")
    update["callback_query"]["message"]["business_connection_id"] = "bc_Xa91"
    message = one(telegram(update))
    assert (message.business_id, message.extra) == ("bc_Xa91", {"callback_id": "2384910283746501"})


def test_members_who_change_their_role_are_passed_over() -> None:
    update = payload("telegram/26_my_chat_member_added_to_group")
    update["my_chat_member"]["old_chat_member"]["status"] = "member"
    update["my_chat_member"]["new_chat_member"]["status"] = "administrator"
    assert summary(telegram(update)) == {"my_chat_member": 1}


def test_an_unblocking_says_so() -> None:
    update = payload("telegram/25_my_chat_member_blocked")
    change = update["my_chat_member"]
    change["old_chat_member"], change["new_chat_member"] = change["new_chat_member"], change["old_chat_member"]
    message = one(telegram(update))
    assert (message.kind, message.extra) == (Kind.FOLLOW, {"unblocked": True})


def test_a_live_location_that_moves_says_nothing() -> None:
    update = payload("telegram/15_location")
    update["edited_message"] = update.pop("message")
    assert summary(telegram(update)) == {"edited_without_text": 1}


def test_content_that_is_new_to_us_is_a_customer_s_message() -> None:
    update = private()
    del update["message"]["text"]
    update["message"]["hologram"] = {"file_id": "x"}
    assert summary(telegram(update)) == [("other", "telegram:5550001111", "", True)]
    update["message"]["caption"] = "look"
    assert summary(telegram(update)) == [("other", "telegram:5550001111", "look", True)]


def test_a_rich_message_is_flattened() -> None:
    update = private()
    del update["message"]["text"]
    update["message"]["rich_message"] = {
        "blocks": [
            {
                "type": "heading",
                "size": 1,
                "text": ["Order ", {"type": "bold", "text": {"type": "italic", "text": "12"}}],
            },
            {"type": "list", "items": [{"label": "1.", "blocks": [{"type": "paragraph", "text": "ลาเต้"}]}]},
            {"type": "table", "cells": [[{"text": "a"}, {"text": ["b", 5, None]}], []]},
            {"type": "future", "text": {"type": "custom_emoji", "alternative_text": "🙂"}},
            {"type": "divider"},
            7,
        ]
    }
    assert one(telegram(update)).text == "Order 12\n1.\nลาเต้\na\nb\n🙂"


def test_a_rich_message_nested_without_end_ends() -> None:
    block: dict[str, Any] = {"type": "paragraph", "text": "deep"}
    for _ in range(300):
        block = {"type": "blockquote", "blocks": [block]}
    update = private()
    del update["message"]["text"]
    update["message"]["rich_message"] = {"blocks": [{"type": "paragraph", "text": "top"}, block]}
    assert one(telegram(update)).text == "top"


def test_what_comes_with_other_kinds_is_kept() -> None:
    names = ("08_photo_caption", "14_sticker", "16_contact")
    assert {name: one(telegram(payload(f"telegram/{name}"))).extra for name in names} == {
        "08_photo_caption": {"file_id": "AgACAgUAAxkBAAIBq2b2", "file_size": 98213},
        "14_sticker": {
            "file_id": "CAACAgUAAx",
            "file_size": 28111,
            "emoji": "👍",
            "set_name": "CafePack",
            "keywords": ["👍"],
        },
        "16_contact": {"phone_number": "+66800000000", "first_name": "สมชาย", "user_id": 5550001111},
    }


def test_a_polled_update_is_read_without_a_secret() -> None:
    received = TelegramReceiver().read(SHOP, "tg-polling", private("hi"), NOW)
    assert (one(received).channel, one(received).text) == ("tg-polling", "hi")
    assert TelegramReceiver().read(SHOP, "tg-polling", ["odd"], NOW).messages == ()
