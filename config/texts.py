"""Texts in Thai and English, and what the bot says where a shop has written nothing of its own."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from config.business_hours import mistake

ReplyName = Literal["welcome", "fallback", "unanswered", "error", "out_of_hours"]


class Text(BaseModel):
    """A text for customers. In a file: one text for every language, or `{th: …, en: …}`; either may be left out."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    th: str | None = None
    en: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, value: Any) -> Any:
        if isinstance(value, str):
            value = {"th": value, "en": value}
        elif not isinstance(value, dict | Text):
            raise mistake("should be a text", "write {th: …, en: …} or a text, in quotes if it looks like a number")
        if isinstance(value, dict) and not any(isinstance(text, str) and text.strip() for text in value.values()):
            raise mistake("is empty", "write the text, or leave the field out")
        return value

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        both = handler(core_schema)
        return {"anyOf": [{"type": "string"}, both]}

    def within(self, language: str) -> str:
        """The text in `en`, else in Thai; where that is missing, the other one."""
        first, second = (self.en, self.th) if language == "en" else (self.th, self.en)
        return first or second or ""


def _in_baht(value: object) -> object:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return {"th": f"{value:,g} บาท", "en": f"{value:,g} baht"}
    return value


Price = Annotated[Text, BeforeValidator(_in_baht, json_schema_input_type=int | float | Text)]  # a number is baht


BUILT_IN: dict[ReplyName, Text] = {
    "welcome": Text(
        th="สวัสดีค่ะ ยินดีต้อนรับนะคะ มีอะไรให้ช่วย พิมพ์บอกได้เลยค่ะ",
        en="Hello and welcome! How can I help you today?",
    ),
    "fallback": Text(
        th="ขออภัยค่ะ เรื่องนี้ยังไม่มีข้อมูลค่ะ รบกวนถามอีกแบบ หรือเล่ารายละเอียดเพิ่มอีกนิดได้ไหมคะ",
        en="Sorry, I don't have the answer to that yet. Could you put it another way, or tell me a bit more?",
    ),
    "unanswered": Text(
        th="ขออภัยค่ะ เรื่องนี้เรายังไม่มีข้อมูล ขอส่งให้พนักงานช่วยตอบนะคะ",
        en="Sorry, I don't know that one. I'll ask our staff.",
    ),
    "error": Text(
        th="ขออภัยค่ะ ระบบขัดข้องชั่วคราว รบกวนส่งข้อความมาใหม่อีกครั้งในอีกสักครู่นะคะ",
        en="Sorry, something went wrong on our side. Please send your message again in a little while.",
    ),
    "out_of_hours": Text(
        th="ขอบคุณที่ทักมานะคะ ตอนนี้ร้านปิดแล้วค่ะ ฝากข้อความไว้ได้เลย พนักงานจะรีบติดต่อกลับเมื่อร้านเปิดค่ะ",
        en="Thanks for your message! We're closed right now. Leave us a note and we'll get back to you when we open.",
    ),
}
