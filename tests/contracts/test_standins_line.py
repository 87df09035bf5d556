"""The LINE stand-in under the real line-bot-sdk: what each rule of the platform leads to there."""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from linebot.v3 import WebhookParser
from linebot.v3.messaging import (
    ApiException,
    AsyncApiClient,
    AsyncMessagingApi,
    AsyncMessagingApiBlob,
    Configuration,
    FlexMessage,
    MarkMessagesAsReadByTokenRequest,
    MessageAction,
    MulticastRequest,
    PushMessageRequest,
    QuickReply,
    QuickReplyItem,
    ReplyMessageRequest,
    SetWebhookEndpointRequest,
    ShowLoadingAnimationRequest,
    TextMessage,
    TextMessageV2,
)
from linebot.v3.messaging import (
    TestWebhookEndpointRequest as WebhookTestRequest,
)
from linebot.v3.webhooks import MessageEvent

from tests.standins import Fault, LineChannel, LineContent, LineStandIn
from tests.standins.line import MONTHLY_LIMIT, RATE_LIMITED, monthly_limit, rate_limited, sign

USER, OTHER, GROUP = "U" + "1" * 32, "U" + "2" * 32, "C" + "3" * 32
SECOND = LineChannel("line-token-2", "line-secret-2", "U" + "b2" * 16, "1650000002")


class Clock:
    def __init__(self) -> None:
        self.now = 1_793_000_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Line:
    """The stand-in, its clock, and the SDK pointed at it."""

    standin: LineStandIn
    clock: Clock
    api: AsyncMessagingApi
    blob: AsyncMessagingApiBlob

    async def reply(self, token: str, *texts: str, **more: Any) -> Any:
        messages = [TextMessage(text=text) for text in texts or ("ok",)]
        return await self.api.reply_message(ReplyMessageRequest(replyToken=token, messages=messages), **more)

    async def push(self, to: str, *texts: str, key: str | None = None) -> Any:
        messages = [TextMessage(text=text) for text in texts or ("ok",)]
        return await self.api.push_message(PushMessageRequest(to=to, messages=messages), x_line_retry_key=key)

    def texts(self, chat: str) -> list[str]:
        return [one.text for one in self.standin.delivered.get(chat, [])]


@pytest.fixture
async def line(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Line]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    clock = Clock()
    async with LineStandIn((LineChannel(), SECOND), clock=clock) as standin:
        api = AsyncApiClient(Configuration(access_token="line-token-1", host=standin.url))
        data = AsyncApiClient(Configuration(access_token="line-token-1", host=standin.data_url))
        yield Line(standin, clock, AsyncMessagingApi(api), AsyncMessagingApiBlob(data))
        await api.close()
        await data.close()


def message_of(error: pytest.ExceptionInfo[ApiException]) -> str:
    return str(json.loads(error.value.body)["message"])


async def refused(call: Any, status: int) -> str:
    with pytest.raises(ApiException) as error:
        await call
    assert error.value.status == status
    assert error.value.headers["x-line-request-id"]
    return message_of(error)


# --- LINE 1.3: replies


async def test_a_reply_token_works_once(line: Line) -> None:
    token = line.standin.issue_token(USER)
    answer = await line.reply(token, "one", "two")
    assert len(answer.sent_messages) == 2
    assert answer.sent_messages[0].quote_token
    assert await refused(line.reply(token, "three"), 400) == "Invalid reply token"
    assert line.texts(USER) == ["one", "two"]


async def test_a_reply_token_expires(line: Line) -> None:
    token = line.standin.issue_token(USER, life=60)
    line.clock.now += 61
    assert await refused(line.reply(token), 400) == "Invalid reply token"
    assert line.standin.delivered == {}


async def test_a_reply_token_that_was_never_issued_is_invalid(line: Line) -> None:
    assert await refused(line.reply("f" * 32), 400) == "Invalid reply token"


async def test_a_reply_token_of_another_channel_is_invalid(line: Line) -> None:
    token = line.standin.issue_token(USER, channel=SECOND)
    assert await refused(line.reply(token), 400) == "Invalid reply token"


async def test_any_token_works_once_where_tests_want_no_issuing(line: Line) -> None:
    line.standin.known_tokens_only = False
    await line.reply(f"{USER}.7", "hello")
    assert await refused(line.reply(f"{USER}.7", "again"), 400) == "Invalid reply token"
    assert line.texts(USER) == ["hello"]


async def test_a_reply_with_a_retry_key_is_refused_and_spends_nothing(line: Line) -> None:
    token = line.standin.issue_token(USER)
    headers = {"Authorization": "Bearer line-token-1", "X-Line-Retry-Key": str(uuid.uuid4())}
    body = {"replyToken": token, "messages": [{"type": "text", "text": "hi"}]}
    async with (
        aiohttp.ClientSession(headers=headers) as client,
        client.post(f"{line.standin.url}/v2/bot/message/reply", json=body) as answer,
    ):
        assert answer.status == 400
    await line.reply(token, "hi")
    assert line.texts(USER) == ["hi"]


async def test_a_reply_costs_no_quota_and_still_goes_when_it_is_spent(line: Line) -> None:
    line.standin.quota = 0
    await line.reply(line.standin.issue_token(USER), "free")
    assert await refused(line.push(USER), 429) == MONTHLY_LIMIT
    assert line.texts(USER) == ["free"]


async def test_a_reply_that_landed_without_an_answer_leaves_an_invalid_token(line: Line) -> None:
    token = line.standin.issue_token(USER)
    line.standin.next(Fault(cut=True, landed=True))
    with pytest.raises(aiohttp.ClientError):
        await line.reply(token, "landed")
    assert line.standin.calls[0].answered_status == 0
    assert await refused(line.reply(token, "landed"), 400) == "Invalid reply token"
    assert line.texts(USER) == ["landed"]


async def test_a_redelivered_event_has_a_fresh_minute_unless_used_or_old(line: Line) -> None:
    first, used = line.standin.text_event(USER, "a"), line.standin.text_event(USER, "b")
    await line.reply(used["replyToken"], "b")
    line.clock.now += 90
    again = line.standin.redelivered(first)
    assert again == {**first, "deliveryContext": {"isRedelivery": True}}
    line.clock.now += 59
    await line.reply(again["replyToken"], "a")
    assert await refused(line.reply(line.standin.redelivered(used)["replyToken"]), 400) == "Invalid reply token"
    old = line.standin.text_event(USER, "c")
    line.clock.now += 20 * 60 + 1
    assert await refused(line.reply(line.standin.redelivered(old)["replyToken"]), 400) == "Invalid reply token"
    assert line.texts(USER) == ["b", "a"]


# --- LINE 1.3: push, multicast and the retry key


async def test_a_push_repeated_with_its_retry_key_is_409_and_shows_once(line: Line) -> None:
    key = str(uuid.uuid4())
    first = await line.push(USER, "hello", key=key)
    with pytest.raises(ApiException) as error:
        await line.push(USER, "hello", key=key)
    assert error.value.status == 409
    assert error.value.headers["x-line-accepted-request-id"]
    body = json.loads(error.value.body)
    assert body["message"] == "The retry key is already accepted"
    assert [one["id"] for one in body["sentMessages"]] == [first.sent_messages[0].id]
    assert line.texts(USER) == ["hello"]
    assert [one.repeated for one in line.standin.raw[USER]] == [False, True]
    assert line.standin.used == 1


async def test_a_retry_key_is_forgotten_after_a_day(line: Line) -> None:
    key = str(uuid.uuid4())
    await line.push(USER, "hello", key=key)
    line.clock.now += 24 * 3600 + 1
    await line.push(USER, "hello", key=key)
    assert line.texts(USER) == ["hello", "hello"]


async def test_a_retry_key_counts_only_once_accepted(line: Line) -> None:
    key = str(uuid.uuid4())
    line.standin.next(Fault(500, {"message": "Internal error"}))
    assert await refused(line.push(USER, "hello", key=key), 500) == "Internal error"
    await line.push(USER, "hello", key=key)
    assert line.texts(USER) == ["hello"]


async def test_a_push_that_landed_although_it_failed_is_deduped(line: Line) -> None:
    key = str(uuid.uuid4())
    line.standin.next(Fault(500, {"message": "Internal error"}, landed=True))
    await refused(line.push(USER, "hello", key=key), 500)
    await refused(line.push(USER, "hello", key=key), 409)
    assert line.texts(USER) == ["hello"]


async def test_retry_keys_of_two_channels_do_not_meet(line: Line) -> None:
    key = str(uuid.uuid4())
    await line.push(USER, "one", key=key)
    auth = {"type": "bearer", "in": "header", "key": "Authorization", "value": "Bearer line-token-2"}
    request = PushMessageRequest(to=USER, messages=[TextMessage(text="two")])
    await line.api.push_message(request, x_line_retry_key=key, _request_auth=auth)
    assert [(one.text, one.channel) for one in line.standin.delivered[USER]] == [
        ("one", "1650000001"),
        ("two", "1650000002"),
    ]


async def test_a_retry_key_must_be_a_uuid(line: Line) -> None:
    await refused(line.push(USER, key="not-a-uuid"), 400)


async def test_a_push_to_who_blocked_the_bot_is_200_and_shows_nowhere(line: Line) -> None:
    line.standin.blocked.add(USER)
    assert len((await line.push(USER)).sent_messages) == 1
    assert line.standin.delivered == {}


async def test_a_push_to_a_foreign_id_fails(line: Line) -> None:
    line.standin.foreign.add(OTHER)
    assert await refused(line.push(OTHER), 400) == "Failed to send messages"
    assert "'to'" in await refused(line.push("somebody"), 400)


async def test_multicast_goes_to_users_only(line: Line) -> None:
    messages = [TextMessage(text="news")]
    await line.api.multicast(MulticastRequest(to=[USER, OTHER], messages=messages))
    assert (line.texts(USER), line.texts(OTHER)) == (["news"], ["news"])
    await refused(line.api.multicast(MulticastRequest(to=[GROUP], messages=messages)), 400)
    many = {"to": [USER] * 501, "messages": [{"type": "text", "text": "news"}]}
    assert await _post(line, "multicast", many) == 400


async def test_a_repeated_multicast_has_no_sent_messages(line: Line) -> None:
    key, request = str(uuid.uuid4()), MulticastRequest(to=[USER, OTHER], messages=[TextMessage(text="news")])
    await line.api.multicast(request, x_line_retry_key=key)
    with pytest.raises(ApiException) as error:
        await line.api.multicast(request, x_line_retry_key=key)
    assert (error.value.status, json.loads(error.value.body)) == (
        409,
        {"message": "The retry key is already accepted"},
    )
    assert len(line.standin.raw[OTHER]) == 2


# --- LINE 1.3: quota and rates


async def test_the_quota_counts_recipients_not_objects(line: Line) -> None:
    assert (await line.api.get_message_quota()).type == "none"
    line.standin.quota, line.standin.members[GROUP] = 6, 5
    await line.push(GROUP, "a", "b")
    quota = await line.api.get_message_quota()
    assert (quota.type, quota.value) == ("limited", 6)
    assert (await line.api.get_message_quota_consumption()).total_usage == 5
    assert await refused(line.push(GROUP), 429) == MONTHLY_LIMIT
    await line.push(USER)


async def test_both_kinds_of_429_differ_by_text_alone(line: Line) -> None:
    line.standin.next(rate_limited(), monthly_limit())
    assert await refused(line.push(USER), 429) == RATE_LIMITED
    assert await refused(line.push(USER), 429) == MONTHLY_LIMIT
    await line.push(USER, "through")
    assert line.texts(USER) == ["through"]


async def test_a_fault_waits_for_the_call_it_is_meant_for(line: Line) -> None:
    line.standin.next(monthly_limit())
    await line.reply(line.standin.issue_token(USER), "reply")
    await refused(line.push(USER), 429)


async def test_too_many_calls_in_a_second_are_refused(line: Line) -> None:
    line.standin.limits["/chat/loading/start"] = 1
    request = ShowLoadingAnimationRequest(chatId=USER, loadingSeconds=5)
    await line.api.show_loading_animation(request)
    assert await refused(line.api.show_loading_animation(request), 429) == RATE_LIMITED
    line.clock.now += 1
    await line.api.show_loading_animation(request)


# --- LINE 1.3: message objects


@pytest.mark.parametrize("text", ["", "   "])
async def test_an_empty_text_refuses_the_whole_call(line: Line, text: str) -> None:
    token = line.standin.issue_token(USER)
    with pytest.raises(ApiException) as error:
        await line.reply(token, "fine", text)
    assert error.value.status == 400
    assert json.loads(error.value.body)["details"] == [{"message": "May not be empty", "property": "messages[1].text"}]
    await line.reply(token, "fine")
    assert line.texts(USER) == ["fine"]


async def test_text_is_measured_in_utf16_units(line: Line) -> None:
    await line.push(USER, "ก" * 5000)
    await line.push(USER, "🎉" * 2500)
    await refused(line.push(USER, "🎉" * 2500 + "a"), 400)


async def test_one_to_five_objects(line: Line) -> None:
    await line.push(USER, *"abcde")
    assert line.texts(USER) == list("abcde")
    request = {"to": USER, "messages": [{"type": "text", "text": "x"}] * 6}
    assert await _post(line, "push", request) == 400
    assert await _post(line, "push", {"to": USER, "messages": []}) == 400


async def test_stray_braces_in_text_v2(line: Line) -> None:
    def push(text: str) -> Any:
        return line.api.push_message(PushMessageRequest(to=USER, messages=[TextMessageV2(text=text)]))

    await push("{{json}} is fine")
    await refused(push("a { b"), 400)
    await refused(push("{nobody}"), 400)


async def test_quick_replies_have_limits_in_graphemes(line: Line) -> None:
    def push(count: int, label: str) -> Any:
        action = {"type": "message", "label": label, "text": "x"}
        items = [{"type": "action", "action": action}] * count
        return _post(
            line, "push", {"to": USER, "messages": [{"type": "text", "text": "?", "quickReply": {"items": items}}]}
        )

    assert await push(13, "ดูเครื่องดื่มทั้งหมดที่นี่") == 200  # 26 code points, 15 graphemes
    assert await push(14, "a") == 400
    assert await push(1, "a" * 21) == 400
    assert await push(1, "") == 400


async def test_the_sdk_sends_quick_replies(line: Line) -> None:
    quick = QuickReply(items=[QuickReplyItem(action=MessageAction(label="ใช่", text="yes"))])
    message = TextMessage(text="?", quickReply=quick)
    await line.api.push_message(PushMessageRequest(to=USER, messages=[message]))
    shown = line.standin.delivered[USER][0].message
    assert shown["quickReply"]["items"][0]["action"]["label"] == "ใช่"


async def test_flex_needs_a_short_alt_text(line: Line) -> None:
    bubble = {"type": "bubble", "body": {"type": "box", "layout": "vertical", "contents": []}}

    def push(alt: str) -> Any:
        message = FlexMessage.from_dict({"type": "flex", "altText": alt, "contents": bubble})
        return line.api.push_message(PushMessageRequest(to=USER, messages=[message]))

    await push("menu")
    assert (
        await _post(
            line, "push", {"to": USER, "messages": [{"type": "flex", "altText": "x" * 1501, "contents": bubble}]}
        )
        == 400
    )


async def test_media_goes_by_https(line: Line) -> None:
    def image(scheme: str) -> dict[str, Any]:
        url = f"{scheme}://example.com/a.jpg"
        return {"to": USER, "messages": [{"type": "image", "originalContentUrl": url, "previewImageUrl": url}]}

    assert await _post(line, "push", image("https")) == 200
    assert await _post(line, "push", image("http")) == 400


async def test_a_body_that_is_no_json_or_too_large(line: Line) -> None:
    url, auth = f"{line.standin.url}/v2/bot/message/push", {"Authorization": "Bearer line-token-1"}
    async with aiohttp.ClientSession(headers=auth) as client, client.post(url, data=b"{") as answer:
        assert answer.status == 400
        async with client.post(url, data=io.BytesIO(b'"' + b"x" * 2_000_000 + b'"')) as answer:
            assert answer.status == 413


async def _post(line: Line, what: str, body: dict[str, Any]) -> int:
    """Past the SDK's own checks."""
    auth = {"Authorization": "Bearer line-token-1"}
    async with (
        aiohttp.ClientSession(headers=auth) as client,
        client.post(f"{line.standin.url}/v2/bot/message/{what}", json=body) as answer,
    ):
        return answer.status


# --- LINE 1.3: tokens


async def test_a_wrong_token_is_401(line: Line) -> None:
    auth = {"type": "bearer", "in": "header", "key": "Authorization", "value": "Bearer wrong"}
    message = await refused(line.api.get_bot_info(_request_auth=auth), 401)
    assert message.startswith("Authentication failed")


async def test_a_stateless_token_lasts_fifteen_minutes(line: Line) -> None:
    url = f"{line.standin.url}/oauth2/v3/token"
    form = {"grant_type": "client_credentials", "client_id": "1650000001", "client_secret": "line-secret-1"}
    async with aiohttp.ClientSession() as client, client.post(url, data={**form, "client_secret": "wrong"}) as answer:
        assert answer.status == 400
        async with client.post(url, data=form) as answer:
            issued = await answer.json()
    assert (issued["token_type"], issued["expires_in"]) == ("Bearer", 900)
    value = f"Bearer {issued['access_token']}"
    auth = {"type": "bearer", "in": "header", "key": "Authorization", "value": value}
    assert (await line.api.get_bot_info(_request_auth=auth)).user_id == LineChannel().user_id
    line.clock.now += 901
    await refused(line.api.get_bot_info(_request_auth=auth), 401)


async def test_info_gives_the_destination_of_each_channel(line: Line) -> None:
    auth = {"type": "bearer", "in": "header", "key": "Authorization", "value": "Bearer line-token-2"}
    assert (await line.api.get_bot_info()).user_id == LineChannel().user_id
    assert (await line.api.get_bot_info(_request_auth=auth)).user_id == SECOND.user_id


# --- LINE 1.3: loading sign, read marks, profiles


async def test_the_loading_sign_is_for_one_to_one_chats_in_steps_of_five(line: Line) -> None:
    answer = await line.api.show_loading_animation_with_http_info(
        ShowLoadingAnimationRequest(chatId=USER, loadingSeconds=10)
    )
    assert answer.status_code == 202
    group = ShowLoadingAnimationRequest(chatId=GROUP, loadingSeconds=10)
    uneven = ShowLoadingAnimationRequest(chatId=USER, loadingSeconds=7)
    await refused(line.api.show_loading_animation(group), 400)
    await refused(line.api.show_loading_animation(uneven), 400)


async def test_a_read_mark_needs_its_token(line: Line) -> None:
    await line.api.mark_messages_as_read_by_token(MarkMessagesAsReadByTokenRequest(markAsReadToken="t"))
    await refused(line.api.mark_messages_as_read_by_token(MarkMessagesAsReadByTokenRequest(markAsReadToken="")), 400)


async def test_profiles_end_with_a_block_but_not_in_groups(line: Line) -> None:
    assert (await line.api.get_profile(USER)).user_id == USER
    line.standin.blocked.add(USER)
    assert await refused(line.api.get_profile(USER), 404) == "Not found"
    assert (await line.api.get_group_member_profile(GROUP, USER)).user_id == USER


# --- LINE 1.2: content


async def test_content_is_prepared_then_there_then_gone(line: Line) -> None:
    line.standin.contents["1"] = LineContent(b"\x00\x01mp4", "video/mp4", preparing=1)
    assert await line.blob.get_message_content("1") is None
    assert bytes(await line.blob.get_message_content("1")) == b"\x00\x01mp4"
    status = await line.blob.get_message_content_transcoding_by_message_id("1")
    assert status.status == "succeeded"
    line.standin.contents["1"].gone = True
    line.standin.contents["3"] = LineContent(b"x", "image/jpeg")
    await refused(line.blob.get_message_content_transcoding_by_message_id("3"), 400)
    assert await refused(line.blob.get_message_content("1"), 410) == "The content is gone"
    assert await refused(line.blob.get_message_content("2"), 404) == "not found"


async def test_content_is_not_served_at_the_api_host(line: Line) -> None:
    line.standin.contents["1"] = LineContent(b"x")
    async with (
        aiohttp.ClientSession(headers={"Authorization": "Bearer line-token-1"}) as client,
        client.get(f"{line.standin.url}/v2/bot/message/1/content") as answer,
    ):
        assert answer.status == 404


# --- LINE 1.1: webhooks


async def test_the_signature_is_that_of_the_documentation() -> None:
    body = b'{"destination":"U8e742f61d673b39c7fff3cecb7536ef0","events":[]}'
    expected = "GhRKmvmHys4Pi8DxkF4+EayaH0OqtJtaZxgTD9fMDLs="
    assert sign("8c570fa6dd201bb328f1c1eac23a96d8", body) == expected


async def test_events_are_delivered_signed_and_parse_in_the_sdk(line: Line) -> None:
    seen: list[tuple[str, str]] = []

    async def take(request: web.Request) -> web.Response:
        seen.append(((await request.read()).decode(), request.headers["x-line-signature"]))
        return web.Response()

    app = web.Application()
    app.router.add_post("/hook", take)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    try:
        assert await line.standin.deliver(url, line.standin.text_event(USER, "สวัสดี")) == 200
        tested = await line.api.test_webhook_endpoint(WebhookTestRequest(endpoint=url))
    finally:
        await runner.cleanup()
    parser = WebhookParser("line-secret-1")
    (event,) = parser.parse(*seen[0])
    assert isinstance(event, MessageEvent)
    await line.reply(event.reply_token, "ค่ะ")
    assert line.texts(USER) == ["ค่ะ"]
    assert (tested.success, parser.parse(*seen[1])) == (True, [])


async def test_the_webhook_address_is_kept_and_must_be_https(line: Line) -> None:
    await refused(line.api.get_webhook_endpoint(), 404)
    await refused(line.api.set_webhook_endpoint(SetWebhookEndpointRequest(endpoint="http://example.com/a")), 400)
    await line.api.set_webhook_endpoint(SetWebhookEndpointRequest(endpoint="https://example.com/a"))
    assert (await line.api.get_webhook_endpoint()).endpoint == "https://example.com/a"
