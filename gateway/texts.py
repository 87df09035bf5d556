"""What the bot says by itself, in both languages. A tenant's `replies` go before these where it has them."""

from __future__ import annotations

from typing import Literal

Tongue = Literal["th", "en"]

TEXTS: dict[str, dict[Tongue, str]] = {
    "help": {
        "th": (
            "พิมพ์ถามได้เลยค่ะ ทั้งภาษาไทยและอังกฤษ\n\n"
            "คำสั่งที่ใช้ได้\n"
            "- /reset เริ่มคุยใหม่\n"
            "- /language th หรือ en เลือกภาษา\n"
            "- /mydata ดูข้อมูลที่เราจำไว้\n"
            "- /forget ให้เราลืมข้อมูลทั้งหมด"
        ),
        "en": (
            "Just type your question, in Thai or English.\n\n"
            "Commands\n"
            "- /reset starts the conversation afresh\n"
            "- /language th or en chooses the language\n"
            "- /mydata shows what we remember\n"
            "- /forget makes us forget everything"
        ),
    },
    "reset": {
        "th": "เริ่มคุยใหม่แล้วค่ะ มีอะไรให้ช่วยไหมคะ",
        "en": "We've started afresh. How can I help?",
    },
    "language": {
        "th": "ได้ค่ะ ต่อไปจะตอบเป็นภาษาไทยนะคะ",
        "en": "Sure, I'll answer in English from now on.",
    },
    "language_auto": {
        "th": "ได้ค่ะ จะตอบตามภาษาที่คุณลูกค้าพิมพ์นะคะ",
        "en": "Sure, I'll answer in the language you write in.",
    },
    "language_usage": {
        "th": "พิมพ์ /language th, /language en หรือ /language auto ค่ะ",
        "en": "Type /language th, /language en or /language auto.",
    },
    "nothing_known": {
        "th": "ตอนนี้เรายังไม่ได้จำข้อมูลอะไรของคุณลูกค้าไว้ค่ะ",
        "en": "We don't remember anything about you yet.",
    },
    "known": {
        "th": "ข้อมูลที่เราจำไว้เกี่ยวกับคุณลูกค้าค่ะ",
        "en": "This is what we remember about you:",
    },
    "forget_ask": {
        "th": "ต้องการให้เราลืมทุกอย่างที่เคยคุยกันใช่ไหมคะ ถ้าใช่ พิมพ์ /forget yes ค่ะ",
        "en": "Shall we forget everything we know about you? If so, type /forget yes.",
    },
    "forgotten": {
        "th": "ลบข้อมูลของคุณลูกค้าเรียบร้อยแล้วค่ะ",
        "en": "Done. We have deleted everything we knew about you.",
    },
    "unknown_command": {
        "th": "ไม่รู้จักคำสั่งนี้ค่ะ พิมพ์ /help เพื่อดูคำสั่งที่ใช้ได้",
        "en": "I don't know that command. Type /help to see what I can do.",
    },
    "stale": {
        "th": "ขอโทษที่ตอบช้านะคะ เมื่อสักครู่ระบบขัดข้อง ถ้ายังต้องการความช่วยเหลืออยู่ พิมพ์มาอีกครั้งได้เลยค่ะ",
        "en": "Sorry for the long silence, we had a fault. If you still need help, please write again.",
    },
    "cannot_see": {
        "th": "ได้รับแล้วค่ะ แต่ตอนนี้ยังเปิดดูไม่ได้ รบกวนพิมพ์บอกสั้น ๆ ได้ไหมคะว่าต้องการให้ช่วยเรื่องอะไร",
        "en": "Thanks, I've got it, but I can't open it here. Could you tell me in a few words what you need?",
    },
    "sticker": {
        "th": "น่ารักจังค่ะ มีอะไรให้ช่วยไหมคะ",
        "en": "Nice one! Is there anything I can help you with?",
    },
    "location": {
        "th": "ได้รับตำแหน่งแล้วค่ะ ต้องการให้ช่วยเรื่องอะไรคะ",
        "en": "Got your location, thanks. What can I do for you?",
    },
    "small_talk": {
        "th": "ค่ะ มีอะไรให้ช่วยอีกไหมคะ",
        "en": "Sure! Anything else I can help with?",
    },
    "complaint": {
        "th": "ต้องขอโทษด้วยนะคะ เรารับเรื่องไว้แล้ว รบกวนแจ้งรายละเอียดหรือเลขที่คำสั่งซื้อเพิ่มเติมได้ไหมคะ ทางร้านจะรีบตรวจสอบให้ค่ะ",
        "en": "I'm sorry about that. I've noted it down. Could you give us the details or the order number, so that we can look into it?",
    },
    "transaction": {
        "th": "รับทราบค่ะ เราบันทึกไว้แล้ว ทางร้านจะยืนยันกับคุณลูกค้าอีกครั้งนะคะ",
        "en": "Got it, I've noted that down. The shop will confirm it with you.",
    },
    "noted": {
        "th": "ขอบคุณค่ะ เราจดไว้แล้วนะคะ",
        "en": "Thank you, I've made a note of that.",
    },
    "feedback": {
        "th": "ขอบคุณสำหรับความคิดเห็นค่ะ เราจะนำไปปรับปรุงนะคะ",
        "en": "Thank you for telling us, we'll take it to heart.",
    },
    "did_you_mean": {
        "th": "หมายถึงเรื่องเหล่านี้หรือเปล่าคะ",
        "en": "Did you mean one of these?",
    },
}


def text(name: str, language: Tongue) -> str:
    return TEXTS[name][language]
