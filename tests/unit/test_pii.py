"""Numbers and addresses that name a person: found, and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from config.settings import Settings
from config.tenants import Tenants
from gateway.meanings import Meanings
from processors.llm import Access, ChatRequest, Completion, ToolCall
from processors.pii import KINDS, Withheld, found, masked, masked_within
from processors.shielded import MaskedEmbeddings, Shielded
from tests.house import shop

# Made up; the check digits hold.
ID = "1101700230708"
CARD = "4111 1111 1111 1111"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"บัตรประชาชน {ID}", "บัตรประชาชน [thai_id]"),
        ("เลข 1-1017-00230-70-8 ค่ะ", "เลข [thai_id] ค่ะ"),
        ("เลข ๑๑๐๑๗๐๐๒๓๐๗๐๘", "เลข [thai_id]"),
        ("id 1101700230709", "id 1101700230709"),  # its check digit is wrong
        (f"card {CARD} exp 12/29", "card [card] exp 12/29"),
        ("card 4111-1111-1111-1112", "card 4111-1111-1111-1112"),
        ("เบอร์0812345678ค่ะ", "เบอร์[phone]ค่ะ"),
        ("โทร 081-234-5678 หรือ 02 555 0148", "โทร [phone] หรือ [phone]"),
        ("0812345678 0898765432", "[phone] [phone]"),
        ("call +66 81 234 5678 or +44 20 7946 0958", "call [phone] or [phone]"),
        ("(081) 234-5678", "[phone]"),
        ("โอนเข้าบัญชีกสิกร 123-4-56789-0", "โอนเข้าบัญชีกสิกร [bank_account]"),
        ("account no. 0123456789", "account no. [bank_account]"),
        ("พร้อมเพย์ 0812345678", "พร้อมเพย์ [phone]"),
        ("mail somchai.k+shop@example.co.th please", "mail [email] please"),
        ("สองชิ้น 350 บาท ส่ง 10110 วันที่ 28/11/2026 12:30", "สองชิ้น 350 บาท ส่ง 10110 วันที่ 28/11/2026 12:30"),
        ("order ORD0812345678X", "order ORD0812345678X"),
        ("พัสดุ TH0123456789012", "พัสดุ TH0123456789012"),
        ("", ""),
    ],
)
def test_each_kind_is_masked_by_its_form_or_its_check_digit(text: str, expected: str) -> None:
    assert masked(text) == expected


def test_only_the_kinds_that_are_asked_for_go() -> None:
    text = f"{ID} 0812345678 a@example.com"
    assert masked(text, ["phone"]) == f"{ID} [phone] a@example.com"
    assert masked(text, []) is text


def test_within_a_payload_every_text_is_masked() -> None:
    payload = {"phones": ["0812345678"], "n": 2, "ok": True, "at": {"said": "a@example.com"}, "id": int(ID)}
    assert masked_within(payload) == {
        "phones": ["[phone]"], "n": 2, "ok": True, "at": {"said": "[email]"}, "id": "[thai_id]",
    }  # fmt: skip


@given(st.text(alphabet="0123456789 -+.@a[]_ก()๐๑๒", max_size=60))
def test_what_is_withheld_comes_back_as_it_was(text: str) -> None:
    names = Withheld(KINDS)
    told = names.told(text)
    assert found(told) == []
    assert names.whole(told) == text
    assert names.told(text) == told


class Echo:
    """Says what it was told last, whole and in pieces; keeps what it was told."""

    def __init__(self, calls: tuple[ToolCall, ...] = ()) -> None:
        self.heard: list[Any] = []
        self._calls = calls

    async def complete(self, request: ChatRequest) -> Completion:
        self.heard.append(request.messages)
        said = str(request.messages[-1]["content"])
        return Completion(said, "echo", data={"value": [said]}, tool_calls=self._calls)

    async def stream(self, request: ChatRequest) -> AsyncIterator[str | Completion]:
        said = (await self.complete(request)).text
        for piece in said:
            yield piece
        yield Completion(said, "echo")


def asked(text: str, *before: dict[str, Any]) -> ChatRequest:
    return ChatRequest([*before, {"role": "user", "content": text}], Access("key", tenant="shop"))


async def test_the_model_never_hears_what_is_withheld_and_its_answer_is_whole() -> None:
    echo = Echo((ToolCall("1", "remember", '{"key": "phone", "value": "[phone_1]"}'),))
    model = Shielded(echo, lambda tenant: KINDS if tenant == "shop" else ())
    used = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "0", "function": {"name": "recall", "arguments": '{"query": "0812345678"}'}}],
    }
    seen = {"role": "user", "content": [{"type": "text", "text": "my card 4111111111111111"}, {"type": "image_url"}]}
    done = await model.complete(asked("call 0812345678, not 0898765432", used, seen))
    assert not any(number in str(echo.heard) for number in ("0812345678", "0898765432", "4111111111111111"))
    assert done.text == "call 0812345678, not 0898765432"
    assert done.data == {"value": ["call 0812345678, not 0898765432"]}
    assert done.tool_calls[0].arguments == '{"key": "phone", "value": "0812345678"}'


async def test_a_streamed_answer_never_shows_half_a_name() -> None:
    model = Shielded(Echo(), lambda tenant: KINDS)
    pieces = [one async for one in model.stream(asked("[note] call 0812345678! [x"))]
    words = [one for one in pieces if isinstance(one, str)]
    assert "".join(words) == "[note] call 0812345678! [x"
    assert not any("phone" in one for one in words)
    assert "0812345678" in "".join(words)
    assert isinstance(pieces[-1], Completion)


async def test_who_withholds_nothing_has_the_very_same_asked() -> None:
    echo = Echo()
    request = asked("call 0812345678")
    await Shielded(echo, lambda tenant: ()).complete(request)
    assert echo.heard == [request.messages]


class Vectors:
    name, floor, trust, remote = "far/1", 0.2, 1.0, True

    def __init__(self) -> None:
        self.heard: list[str] = []

    async def encode(self, texts: Sequence[str], *, question: bool = False) -> Any:
        self.heard += texts
        return [[1.0]] * len(texts)

    async def close(self) -> None:
        raise AssertionError("not its own to close")


async def test_a_far_model_of_meanings_is_not_told_either() -> None:
    vectors = Vectors()
    shielded = MaskedEmbeddings(vectors, ["phone"])
    assert await shielded.encode(["call 0812345678"], question=True) == [[1.0]]
    await shielded.close()
    assert (vectors.heard, shielded.name) == (["call [phone]"], "far/1/without-phone")


def test_whose_shop_withholds_something_asks_a_far_model_by_masks(tmp_path: Path) -> None:
    pytest.importorskip("numpy")  # without it nothing is found by meaning
    folder = tmp_path / "tenants"
    folder.mkdir()
    for name, more in (("open", {}), ("shut", {"privacy": {"withhold": ["phone"]}})):
        far = {
            "channels": {"web": {"platform": "web"}},
            "memory": {"embeddings": "far/model"},
            "llm": {"api_key": "k", "base_url": "http://127.0.0.1:9/v1"},
        }
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(shop(**far, **more)), encoding="utf-8")
    tenants = Tenants(Settings(config_dir=tmp_path, data_dir=tmp_path / "data"))
    tenants.load()
    meanings = Meanings(Settings(config_dir=tmp_path, data_dir=tmp_path / "data"), tenants)
    assert not isinstance(meanings.of("open"), MaskedEmbeddings)
    assert isinstance(meanings.of("shut"), MaskedEmbeddings)
    assert meanings.of("shut") is meanings.of("shut")
