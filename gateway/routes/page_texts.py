"""What the web chat's page says by itself, in both languages."""

from __future__ import annotations

from gateway.texts import Tongue

TEXTS: dict[str, dict[Tongue, str]] = {
    "conversation": {"th": "บทสนทนา", "en": "Conversation"},
    "message": {"th": "พิมพ์ข้อความ", "en": "Type a message"},
    "send": {"th": "ส่ง", "en": "Send"},
    "picture": {"th": "รูปภาพ", "en": "Picture"},
    "suggestions": {"th": "ข้อความแนะนำ", "en": "Suggestions"},
    "language": {"th": "ภาษา", "en": "Language"},
    "staff": {"th": "พนักงานร้าน", "en": "Shop staff"},
    "noscript": {
        "th": "แชตนี้ต้องเปิดใช้ JavaScript ในเบราว์เซอร์ก่อนค่ะ",
        "en": "This chat needs JavaScript: please switch it on in your browser.",
    },
    "offline": {"th": "ขาดการเชื่อมต่อ กำลังลองใหม่…", "en": "No connection. Trying again…"},
    "failed": {
        "th": "ส่งข้อความไม่สำเร็จ ลองใหม่อีกครั้งนะคะ",
        "en": "That didn't work. Please try again.",
    },
    "slower": {
        "th": "ส่งข้อความเร็วไปนิดค่ะ รอสักครู่แล้วลองใหม่นะคะ",
        "en": "That was a little fast. Please wait a moment and try again.",
    },
    "too_large": {
        "th": "ไฟล์นี้ใหญ่เกินไปค่ะ ส่งรูปได้ไม่เกิน 10 MB นะคะ",
        "en": "That is too large: pictures can be up to 10 MB.",
    },
    "late": {
        "th": "ยังไม่ได้คำตอบค่ะ เดี๋ยวคำตอบจะขึ้นตรงนี้เมื่อพร้อมนะคะ",
        "en": "No answer yet. It will appear here once it is ready.",
    },
    "gone": {"th": "ตอนนี้แชตนี้ปิดอยู่ค่ะ", "en": "This chat is closed at the moment."},
    "wrong_shop": {
        "th": "ไม่พบแชตของร้านตามที่อยู่นี้ค่ะ กรุณาตรวจสอบที่อยู่อีกครั้ง",
        "en": "No shop has its chat at this address. Please check the address.",
    },
    "no_shop": {"th": "ยังไม่มีร้านที่เปิดแชตหน้าเว็บค่ะ", "en": "No shop has a web chat here."},
}


def sayings(language: Tongue) -> dict[str, str]:
    return {name: texts[language] for name, texts in TEXTS.items()}
