"""What each of LINE's webhooks becomes."""

from __future__ import annotations

import hmac
from typing import Any

import pytest

from gateway.adapters.line import LineReceiver, signed
from gateway.errors import BadSignature, NotJson
from gateway.messages import MAX_TEXT, Kind
from tests.unit.receiving import LINE_SECRET, NOW, PAYLOADS, SHOP, Row, line, one, payload, sign, summary

USER = "U24c9e15e52afc47c225b757e7bee1f9d"

BECOMES: dict[str, list[Row] | dict[str, int]] = {
    "00_verify_empty": [],
    "01_text_user": [("text", "line:U24c9", "Hello, what time do you open today?", True)],
    "02_text_thai_emoji": [
        ("text", "line:U7e58", "สวัสดีค่ะ 🙏 ขอจองโต๊ะ 4 ที่นั่ง พรุ่งนี้หกโมงเย็นได้ไหมคะ (heart) ขอบคุณค่ะ 👨‍👩‍👧", True)
    ],
    "03_text_group_mention_self": [("text", "line:group:C5137", "🎉🎉 ช่วยสรุปเมนูวันนี้หน่อย", True)],
    "04_text_group_mention_all_users": [("text", "line:group:C5137", "@All 👋 @สมชาย @John พร้อมไหม", False)],
    "05_text_group_no_userid": [("text", "line:group:Cf617", "message from a member without consent", False)],
    "06_text_room": [("text", "line:group:R3cca", "old multi-person chat", False)],
    "07_text_quote": [("text", "line:group:C5137", "ตอบข้อความเมื่อกี้", False)],
    "08_text_redelivery": [("text", "line:U7e58", "ส่งซ้ำ / redelivered", True)],
    "09_text_standby_no_reply_token": {"standby": 1},
    "10_image_user": [("image", "line:U24c9", "", True)],
    "11_image_set_two_events_out_of_order": [("image", "line:U24c9", "", True), ("image", "line:U24c9", "", True)],
    "12_image_external": [("image", "line:U24c9", "", True)],
    "13_video": [("video", "line:U24c9", "", True)],
    "14_audio": [("audio", "line:U24c9", "", True)],
    "15_file_thai_name": [("file", "line:U24c9", "", True)],
    "16_location": [("location", "line:U24c9", "", True)],
    "17_location_no_title_int_coords": [("location", "line:U24c9", "", True)],
    "18_sticker": [("sticker", "line:U24c9", "", True)],
    "19_sticker_message_text": [("sticker", "line:group:C5137", "ไปกัน\nเถอะ!", False)],
    "20_message_edited": [("edited", "line:group:C5137", "แก้ไขแล้ว: ขอ 6 ที่นั่ง", False)],
    "21_unsend": [("unsend", "line:group:C5137", "", True)],
    "22_follow_new": [("follow", "line:U3e04", "", True)],
    "23_follow_unblocked": [("follow", "line:U3e04", "", True)],
    "24_unfollow": [("unfollow", "line:U3e04", "", True)],
    "25_join_group": [("follow", "line:group:C7873", "", True)],
    "26_leave_group": [("unfollow", "line:group:C7873", "", True)],
    "27_member_joined": {"memberJoined": 1},
    "28_member_left": {"memberLeft": 1},
    "29_postback_simple": [("postback", "line:U24c9", "action=book&table=12&lang=ไทย", True)],
    "30_postback_datetime": [("postback", "line:U24c9", "pick", True)],
    "31_postback_richmenu": {"richMenuSwitch": 1},
    "32_video_play_complete": {"videoPlayComplete": 1},
    "33_beacon_enter": {"beacon": 1},
    "34_account_link_ok": {"accountLink": 1},
    "35_account_link_failed_no_source": {"accountLink": 1},
    "36_membership_joined": {"membership": 1},
    "37_membership_renewed": {"membership": 1},
    "38_module_attached": {"module": 1},
    "39_activated": {"activated": 1},
    "40_deactivated": {"deactivated": 1},
    "41_bot_suspended": {"botSuspended": 1},
    "42_bot_resumed": {"botResumed": 1},
    "43_pnp_delivery": {"delivery": 1},
    "44_batch_mixed_users": [
        ("text", "line:U24c9", "A", True),
        ("follow", "line:U990d", "", True),
        ("text", "line:group:C5137", "B", False),
        ("unfollow", "line:U03aa", "", True),
    ],
    "edge_batch_one_bad_event": [("text", "line:U24c9", "bad neighbour next", True), ("text", "line:U24c9", "x", True)],
    "edge_extra_fields_everywhere": [("text", "line:U24c9", "extra", True)],
    "edge_unknown_event_type": {"unknown": 1},
    "edge_unknown_message_type": [("other", "line:U24c9", "", True)],
    "edge_unknown_mode": [("text", "line:U24c9", "hi", True)],
    "edge_unknown_sticker_resource_type": [("sticker", "line:U24c9", "", True)],
}


@pytest.mark.parametrize("secret", ["x", "secret" * 5, "ก" * 21, "x" * 63, "x" * 64, "x" * 65, "x" * 300])
def test_a_signature_is_made_as_the_standard_says(secret: str) -> None:
    for body in (b"", b"{}", bytes(range(256)) * 9):
        assert signed(secret, body) == hmac.digest(secret.encode(), body, "sha256")


def test_every_payload_is_in_the_table() -> None:
    assert sorted(BECOMES) == sorted(path.stem for path in (PAYLOADS / "line").glob("*.json"))


@pytest.mark.parametrize("name", BECOMES)
def test_a_webhook_becomes(name: str) -> None:
    assert summary(line((PAYLOADS / "line" / f"{name}.json").read_bytes())) == BECOMES[name]


def text_event(text: object = "hello", **fields: Any) -> dict[str, Any]:
    event = payload("line/01_text_user")["events"][0]
    event["message"]["text"] = text
    return {**event, **fields}


def batch(*events: object) -> dict[str, Any]:
    return {"destination": "U2f7d2998820cd4e187e711f4aa950c20", "events": list(events)}


def test_a_text_carries_all_that_the_answer_needs() -> None:
    received = line((PAYLOADS / "line/01_text_user.json").read_bytes())
    message = one(received)
    assert received.destination == "U2f7d2998820cd4e187e711f4aa950c20"
    assert (message.tenant, message.channel, message.platform) == ("shop", "line-main", "line")
    assert message.event_id == "01M5VJ1N5M7R2NDFGEMW2HAPCZ"
    assert message.chat_id == USER
    assert message.sender_id is None
    assert message.message_id == "612345678900007919"
    assert (message.sent_at, message.received_at) == (1793000002.74, NOW)
    assert message.reply_token == "fe87d6974881ef3b2587ed87183f2b9b"
    assert message.redelivered is False


def test_the_published_test_vector_is_taken() -> None:
    body = b'{"destination":"U8e742f61d673b39c7fff3cecb7536ef0","events":[]}'
    shop = SHOP.model_copy(
        update={
            "channels": {
                "line-main": SHOP.channels["line-main"].model_validate(
                    {"channel_secret": "8c570fa6dd201bb328f1c1eac23a96d8", "channel_access_token": "t"}
                )
            }
        }
    )
    headers = {"x-line-signature": "GhRKmvmHys4Pi8DxkF4+EayaH0OqtJtaZxgTD9fMDLs="}
    assert LineReceiver().receive(shop, "line-main", body, headers, NOW).messages == ()


@pytest.mark.parametrize(
    "signature",
    [None, "", "abc", "ลายเซ็น", "\udcff", sign(b"another body"), sign(b"{}") + "=", sign(b"{}").lower(), "A" * 100_000],
)
def test_a_wrong_or_missing_signature_is_refused(signature: str | None) -> None:
    headers = {} if signature is None else {"x-line-signature": signature}
    with pytest.raises(BadSignature):
        LineReceiver().receive(SHOP, "line-main", b"{}", headers, NOW)


def test_the_signature_is_checked_before_the_body_is_read() -> None:
    with pytest.raises(BadSignature):
        LineReceiver().receive(SHOP, "line-main", b"no json", {"x-line-signature": "x"}, NOW)


def test_a_channel_of_another_platform_takes_nothing() -> None:
    with pytest.raises(BadSignature):
        LineReceiver().receive(SHOP, "tg", b"{}", {"x-line-signature": sign(b"{}")}, NOW)


@pytest.mark.parametrize("body", [b"", b"no json", b"{", b"[" * 100_000 + b"]" * 100_000, b'{"events": tru}'])
def test_what_is_not_json_is_refused(body: bytes) -> None:
    with pytest.raises(NotJson):
        line(body)


@pytest.mark.parametrize("depth", [300, 900])
def test_an_event_without_an_id_is_taken_with_those_beside_it_however_deep_it_is_nested(depth: int) -> None:
    deep = b"[" * depth + b"]" * depth
    event = b'{"type":"message","source":{"userId":"U1"},"message":{"type":"text","text":"hi"},"x":%b}' % deep
    named = event.replace(b'"type"', b'"webhookEventId":"E1","type"', 1)
    both = line(b'{"events":[%b,%b]}' % (event, named)).messages
    assert [message.text for message in both] == ["hi", "hi"]
    assert both[0].event_id == one(line(b'{"events":[%b]}' % event)).event_id


@pytest.mark.parametrize("body", [b"null", b"[]", b'"x"', b"1", b"{}", b'{"events": null}', b'{"events": {"a": 1}}'])
def test_json_that_makes_no_sense_gives_no_messages(body: bytes) -> None:
    assert line(body).messages == ()


def test_a_lone_surrogate_becomes_a_replacement_character() -> None:
    body = rb'{"events":[{"type":"message","message":{"type":"text","id":"1","text":"a\ud800b \ud83d\ude4f"},'
    body += b'"source":{"type":"user","userId":"' + USER.encode() + b'"}}]}'
    assert one(line(body)).text == "a\ufffdb 🙏"


@pytest.mark.parametrize("odd", [b"NaN", b"Infinity", b"-Infinity", b"1e999", b"9" * 5000])
def test_a_number_that_json_does_not_know_loses_nothing(odd: bytes) -> None:
    body = (PAYLOADS / "line/01_text_user.json").read_bytes().replace(b"1793000002740", odd)
    message = one(line(body))
    assert (message.text, message.sent_at) == ("Hello, what time do you open today?", NOW)


def test_bytes_that_are_not_utf8_and_a_byte_order_mark_lose_nothing() -> None:
    body = (PAYLOADS / "line/01_text_user.json").read_bytes().replace(b"Hello", b"Hell\xff")
    assert one(line(b"\xef\xbb\xbf" + body)).text == "Hell\ufffd, what time do you open today?"


def test_events_that_make_no_sense_leave_their_neighbours_alone() -> None:
    odd: list[object] = [None, 5, "x", [], {}, {"type": 7}, {"type": "message"}, {"type": "message", "message": []}]
    received = line(batch(*odd, text_event("still here"), *odd))
    assert [message.text for message in received.messages] == ["still here"]
    assert sum(received.passed_over.values()) == 2 * len(odd)


def test_an_event_without_an_id_gets_the_same_one_each_time_it_is_delivered() -> None:
    event = text_event()
    del event["webhookEventId"]
    again = {**event, "deliveryContext": {"isRedelivery": True}}
    other = {**event, "replyToken": "another"}
    first, second, third = (one(line(batch(each))).event_id for each in (event, again, other))
    assert first == second != third
    assert first.startswith("derived:")


def test_a_user_id_can_not_pass_for_a_group() -> None:
    event = text_event(source={"type": "user", "userId": "group:C513772ee53011ad9f4dc374b2d34d0e9"})
    assert summary(line(batch(event))) == {"no_source": 1}


@pytest.mark.parametrize("user_id", ["", "../../x", "a/b", "a\x00b", "U" * 4096, 5, None])
def test_a_user_id_that_is_none_is_passed_over(user_id: object) -> None:
    assert summary(line(batch(text_event(source={"type": "user", "userId": user_id})))) == {"no_source": 1}


def test_a_group_without_its_id_is_not_answered_in_private() -> None:
    assert summary(line(batch(text_event(source={"type": "group", "userId": USER})))) == {"no_source": 1}


@pytest.mark.parametrize("token", ["0" * 32, "f" * 32])
def test_the_console_s_dummy_events_are_passed_over(token: str) -> None:
    assert summary(line(batch(text_event(replyToken=token)))) == {"verify": 1}


def test_in_standby_a_block_and_an_unsend_are_still_heard() -> None:
    events = [{**payload(f"line/{name}")["events"][0], "mode": "standby"} for name in ("24_unfollow", "21_unsend")]
    assert [message.kind for message in line(batch(*events)).messages] == [Kind.UNFOLLOW, Kind.UNSEND]


def test_a_long_text_is_cut_and_says_so() -> None:
    message = one(line(batch(text_event("ก" * 100_000))))
    assert (message.text, message.extra) == ("ก" * MAX_TEXT, {"cut": 100_000 - MAX_TEXT})


def test_nul_characters_are_dropped() -> None:
    assert one(line(batch(text_event("a\x00b")))).text == "ab"


def group_text(text: str, *mentionees: object) -> dict[str, Any]:
    event: dict[str, Any] = payload("line/03_text_group_mention_self")["events"][0]
    event["message"] |= {"text": text, "mention": {"mentionees": list(mentionees)}}
    return batch(event)


def test_a_command_after_a_mention_is_a_command() -> None:
    message = one(line(group_text("🎉@bot /reset", {"index": 2, "length": 4, "type": "user", "isSelf": True})))
    assert (message.text, message.mentioned) == ("🎉 /reset", True)
    message = one(line(group_text("@bot /reset", {"index": 0, "length": 4, "type": "user", "isSelf": True})))
    assert (message.text, message.mentioned) == ("/reset", True)


def test_the_bot_is_known_by_its_own_id_too() -> None:
    mine = {"index": 0, "length": 4, "type": "user", "userId": "U2f7d2998820cd4e187e711f4aa950c20"}
    assert one(line(group_text("@bot hi", mine))).text == "hi"


@pytest.mark.parametrize(("index", "length"), [(1, 4), (-1, 4), (0, 0), (0, 500), (None, 4), ("0", "4"), (True, 4)])
def test_a_mention_with_odd_offsets_counts_but_cuts_nothing(index: object, length: object) -> None:
    message = one(line(group_text("@bot hi", {"index": index, "length": length, "isSelf": True})))
    assert (message.text, message.mentioned) == ("@bot hi", True)


def test_what_comes_with_other_kinds_is_kept() -> None:
    extra = {
        name: one(line(payload(f"line/{name}"))).extra for name in ("16_location", "18_sticker", "30_postback_datetime")
    }
    assert extra == {
        "16_location": {
            "title": "ร้านกาแฟสยาม",
            "address": "ถนนพระราม 1 ปทุมวัน กรุงเทพฯ 10330",
            "latitude": 13.7456,
            "longitude": 100.5341,
        },
        "18_sticker": {"package_id": "11537", "sticker_id": "52002734", "keywords": ["hello", "wave", "สวัสดี"]},
        "30_postback_datetime": {"params": {"datetime": "2026-11-21T18:00"}},
    }


def test_an_unsend_names_the_message_that_is_gone() -> None:
    assert one(line(payload("line/21_unsend"))).message_id == "612345678900031676"


def test_no_secret_is_in_an_error() -> None:
    with pytest.raises(BadSignature) as caught:
        LineReceiver().receive(SHOP, "line-main", b"{}", {"x-line-signature": "x"}, NOW)
    assert LINE_SECRET not in repr(caught.value)
