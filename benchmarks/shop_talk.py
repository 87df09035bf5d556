"""What the customers of the benchmark write, and their names and secrets. All of it is invented.

Every message ends in a mark `#m<number>#`, which the stand-in's language model repeats in its answer: so an answer is
matched to its message whatever bot gave it.
"""

from __future__ import annotations

import base64
import hmac
import json
import re
import time

TENANTS = 16
MARK = re.compile(rb"#m(\d+)#")

SAID = (
    "สวัสดีค่ะ วันนี้ร้านเปิดถึงกี่โมงคะ พอดีจะแวะไปกับเพื่อนหลังเลิกงานประมาณหกโมงเย็น",
    "ขอสั่งลาเต้เย็นหวานน้อยสองแก้ว กับครัวซองต์เนยสดหนึ่งชิ้น รับตอนบ่ายสามโมงได้ไหมครับ",
    "กาแฟเมื่อวานที่ส่งมาหกหมดเลยค่ะ แก้วแตกด้วย อยากให้ทางร้านช่วยดูให้หน่อยนะคะ",
    "ชอบบรรยากาศร้านมากเลยครับ นั่งทำงานได้ทั้งวัน ไวไฟก็เร็ว ขอบคุณมากครับ",
    "มีเมล็ดกาแฟคั่วอ่อนจากเชียงรายไหมคะ ถ้ามีขอทราบราคาถุงละครึ่งกิโลกรัมด้วยค่ะ",
    "พอดีแพ้นมวัวค่ะ ขอเปลี่ยนเป็นนมโอ๊ตได้ไหมคะ แล้วต้องเพิ่มเงินเท่าไหร่",
    "โอเคครับ เดี๋ยวถึงร้านแล้วจะทักมาบอกอีกทีนะครับ น่าจะอีกประมาณครึ่งชั่วโมง",
    "อยากจองโต๊ะสำหรับห้าคน วันเสาร์นี้ตอนสิบโมงเช้า ขอมุมในสวนถ้ายังว่างอยู่นะคะ",
)
ANSWERED = "ได้เลยค่ะคุณลูกค้า ทางร้านรับเรื่องไว้แล้วนะคะ เดี๋ยวน้องสวนเตรียมไว้ให้เรียบร้อยค่ะ ขอบคุณที่แวะมานะคะ"


def said(number: int) -> str:
    return f"{SAID[number % len(SAID)]} #m{number}#"


def history(length: int) -> list[tuple[str, str]]:
    """`length` messages as (role, text), the customer's first; roles are `user` and `bot`."""
    return [("bot", ANSWERED) if n % 2 else ("user", SAID[n // 2 % len(SAID)]) for n in range(length)]


def line_secret(tenant: int) -> str:
    return f"benchmark-line-secret-{tenant}"


def line_token(tenant: int) -> str:
    return f"benchmark-line-token-{tenant}"


def telegram_token(tenant: int) -> str:
    return f"{1000000 + tenant}:benchmark-bot"


def telegram_secret(tenant: int) -> str:
    return f"benchmark-telegram-secret-{tenant}"


def line_user(user: int) -> str:
    return f"U{user:032x}"


def telegram_user(user: int) -> int:
    return 700_000_000 + user


def line_webhook(number: int, user: int, tenant: int) -> tuple[bytes, dict[str, str]]:
    """Body and headers of one text message, signed as LINE signs."""
    event = {
        "type": "message",
        "message": {"type": "text", "id": str(500_000_000_000 + number), "quoteToken": "q", "text": said(number)},
        "webhookEventId": f"01BENCH{number:019d}",
        "deliveryContext": {"isRedelivery": False},
        "timestamp": int(time.time() * 1000),
        "source": {"type": "user", "userId": line_user(user)},
        "replyToken": f"{number + 1:032x}",
        "mode": "active",
    }
    body = json.dumps({"destination": line_user(0), "events": [event]}, ensure_ascii=False).encode()
    signature = base64.b64encode(hmac.digest(line_secret(tenant).encode(), body, "sha256")).decode()
    return body, {"Content-Type": "application/json", "X-Line-Signature": signature}


def telegram_update(number: int, user: int, tenant: int) -> tuple[bytes, dict[str, str]]:
    person = {"id": telegram_user(user), "first_name": "A"}
    message = {
        "message_id": 1 + number,
        "date": int(time.time()),
        "text": said(number),
        "from": {**person, "is_bot": False, "language_code": "th"},
        "chat": {**person, "type": "private"},
    }
    body = json.dumps({"update_id": 10_000 + number, "message": message}, ensure_ascii=False).encode()
    return body, {"Content-Type": "application/json", "X-Telegram-Bot-Api-Secret-Token": telegram_secret(tenant)}
