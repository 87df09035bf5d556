"""What the bot says by itself, in both languages. A tenant's `replies` go before these where it has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

Tongue = Literal["th", "en"]

TEXTS: dict[str, dict[Tongue, str]] = {
    "help": {
        "th": "พิมพ์ถามได้เลยค่ะ ทั้งภาษาไทยและอังกฤษ",
        "en": "Just type your question, in Thai or English.",
    },
    "help_commands": {"th": "คำสั่งที่ใช้ได้", "en": "Commands"},
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
        "th": "พิมพ์ /{word} th, /{word} en หรือ /{word} auto ค่ะ",
        "en": "Type /{word} th, /{word} en or /{word} auto.",
    },
    "nothing_known": {
        "th": "ตอนนี้เรายังไม่ได้จำข้อมูลอะไรของคุณลูกค้าไว้ค่ะ",
        "en": "We don't remember anything about you yet.",
    },
    "known": {
        "th": "ข้อมูลที่เราจำไว้เกี่ยวกับคุณลูกค้าค่ะ",
        "en": "This is what we remember about you:",
    },
    "known_summary": {"th": "โดยสรุป", "en": "In short"},
    "known_events": {"th": "ข้อความล่าสุดที่เราเก็บไว้", "en": "The latest messages we keep"},
    "known_end": {
        "th": "ต้องการให้ลบทั้งหมด พิมพ์ /{word} ค่ะ",
        "en": "To have all of it deleted, type /{word}.",
    },
    "forget_ask": {
        "th": "ต้องการให้เราลืมทุกอย่างที่เคยคุยกันใช่ไหมคะ ถ้าใช่ พิมพ์ /{word} yes ค่ะ",
        "en": "Shall we forget everything we know about you? If so, type /{word} yes.",
    },
    "forgotten": {
        "th": "ลบข้อมูลของคุณลูกค้าเรียบร้อยแล้วค่ะ",
        "en": "Done. We have deleted everything we knew about you.",
    },
    "link_code": {
        "th": (
            "รหัสของคุณลูกค้าคือ {code} ใช้ได้ครั้งเดียว ภายใน 10 นาทีค่ะ\n"
            "เปิดแชตกับร้านในอีกช่องทางหนึ่ง แล้วพิมพ์ /{word} {code} นะคะ\n"
            "ถ้าได้รหัสมาจากช่องทางอื่นแล้ว พิมพ์รหัสนั้นที่นี่ได้เลยค่ะ"
        ),
        "en": (
            "Your code is {code}. It works once, within 10 minutes.\n"
            "Open our chat in the other app and type /{word} {code} there.\n"
            "If you already have a code from the other app, just type it here."
        ),
    },
    "linked": {
        "th": "เชื่อมต่อแล้วค่ะ ต่อไปจะทักมาทาง {here} หรือ {there} เราก็รู้ว่าเป็นคุณลูกค้าคนเดิมนะคะ",
        "en": "Linked! From now on we know you on {here} and on {there} as the same person.",
    },
    "linked_other": {
        "th": "เชื่อมแชตนี้กับ {there} แล้วค่ะ ถ้าคุณลูกค้าไม่ได้ทำเอง แจ้งร้านได้เลยนะคะ",
        "en": "This chat is now linked with {there}. If that wasn't you, please tell the shop.",
    },
    "linked_number": {
        "th": "เบอร์นี้ยืนยันไว้กับอีกช่องทางแล้ว เราเชื่อมทั้งสองแชตให้เรียบร้อยค่ะ",
        "en": "This number was verified on another channel too: we've linked both chats.",
    },
    "link_wrong": {
        "th": "รหัสไม่ถูกต้องหรือหมดอายุแล้วค่ะ พิมพ์ /{word} ในอีกช่องทางเพื่อขอรหัสใหม่นะคะ",
        "en": "That code is wrong or no longer valid. Type /{word} in the other app for a new one.",
    },
    "link_here": {
        "th": "รหัสนี้เป็นของแชตนี้เองค่ะ รบกวนพิมพ์ในอีกช่องทางหนึ่งนะคะ",
        "en": "That is this chat's own code: type it in the other app.",
    },
    "link_tries": {
        "th": "ใส่รหัสผิดหลายครั้งแล้วค่ะ รบกวนรอ 10 นาทีแล้วลองใหม่นะคะ",
        "en": "That was too many wrong codes. Please wait 10 minutes and try again.",
    },
    "link_private": {
        "th": "รหัสเชื่อมต่อขอได้ในแชตส่วนตัวเท่านั้นค่ะ",
        "en": "Please do that in a private chat with me.",
    },
    "only_private": {
        "th": "เรื่องนี้เป็นข้อมูลส่วนตัว รบกวนทักมาทางแชตส่วนตัวนะคะ",
        "en": "That is between you and me: please write to me in a private chat.",
    },
    "rate_ask": {
        "th": "คุยกันครั้งนี้เป็นอย่างไรบ้างคะ กดปุ่มด้านล่าง หรือพิมพ์ /{word} 5 ตามด้วยความเห็นได้ค่ะ (1 แย่ ถึง 5 ดีมาก)",
        "en": "How was this chat? Press a button, or type /{word} 5 and a few words (1 is bad, 5 is great).",
    },
    "rated": {"th": "ขอบคุณที่บอกกันนะคะ", "en": "Thank you for telling us!"},
    "rated_bad": {
        "th": "ขอโทษด้วยนะคะ ถ้าสะดวก พิมพ์ /{word} 1 ตามด้วยเหตุผลสั้น ๆ ทางร้านจะได้แก้ไขค่ะ",
        "en": "I'm sorry. If you like, type /{word} 1 and a few words on what went wrong, for the shop to mend.",
    },
    "rate_nothing": {"th": "ยังไม่มีบทสนทนาให้ให้คะแนนค่ะ", "en": "There is no chat to rate yet."},
    "unknown_command": {
        "th": "ขอโทษค่ะ ไม่รู้จักคำสั่งนี้ค่ะ",
        "en": "I don't know that command.",
    },
    "see_help": {
        "th": "พิมพ์ /{word} เพื่อดูคำสั่งที่ใช้ได้นะคะ",
        "en": "Type /{word} to see what I can do.",
    },
    "stale": {
        "th": "ขอโทษที่ตอบช้านะคะ เมื่อสักครู่ระบบขัดข้อง ถ้ายังต้องการความช่วยเหลืออยู่ พิมพ์มาอีกครั้งได้เลยค่ะ",
        "en": "Sorry for the long silence, we had a fault. If you still need help, please write again.",
    },
    "thinking": {
        "th": "กำลังหาคำตอบให้อยู่นะคะ อีกสักครู่กดปุ่มด้านล่างเพื่อดูคำตอบได้เลยค่ะ",
        "en": "I'm still working on it. Press the button below in a moment to see the answer.",
    },
    "get_answer": {"th": "ดูคำตอบ", "en": "Show the answer"},
    "no_answer_waits": {
        "th": "ส่งคำตอบให้แล้วด้านบนค่ะ ถ้ามีอะไรเพิ่มเติม พิมพ์มาได้เลยนะคะ",
        "en": "You already have the answer above. Just write if there is anything else.",
    },
    "cannot_see": {
        "th": "ได้รับแล้วค่ะ แต่ตอนนี้ยังเปิดดูไม่ได้ รบกวนพิมพ์บอกสั้น ๆ ได้ไหมคะว่าต้องการให้ช่วยเรื่องอะไร",
        "en": "Thanks, I've got it, but I can't open it here. Could you tell me in a few words what you need?",
    },
    "too_large": {
        "th": "ขอโทษค่ะ ไฟล์ใหญ่เกินไป เปิดดูไม่ได้ รบกวนส่งไฟล์ที่เล็กกว่านี้ หรือพิมพ์บอกสั้น ๆ ได้ไหมคะ",
        "en": "Sorry, that file is too large for me to open. Could you send a smaller one, or tell me in a few words?",
    },
    "sticker": {
        "th": "น่ารักจังค่ะ มีอะไรให้ช่วยไหมคะ",
        "en": "Nice one! Is there anything I can help you with?",
    },
    "location": {
        "th": "ได้รับตำแหน่งแล้วค่ะ ต้องการให้ช่วยเรื่องอะไรคะ",
        "en": "Got your location, thanks. What can I do for you?",
    },
    "contact": {
        "th": "ได้รับข้อมูลติดต่อแล้ว ขอบคุณค่ะ ต้องการให้ช่วยเรื่องอะไรคะ",
        "en": "Got the contact, thanks. What can I do for you?",
    },
    "thanks": {
        "th": "ด้วยความยินดีค่ะ",
        "en": "You're welcome!",
    },
    "small_talk": {
        "th": "ค่ะ มีอะไรให้ช่วยอีกไหมคะ",
        "en": "Sure! Anything else I can help with?",
    },
    "back": {
        "th": "สวัสดีค่ะ ดีใจที่ทักมาอีกนะคะ วันนี้ให้ช่วยเรื่องอะไรดีคะ",
        "en": "Hello again! What can I do for you today?",
    },
    "complaint": {
        "th": "ต้องขอโทษด้วยนะคะ เราจดเรื่องนี้ไว้ให้ทางร้านแล้ว รบกวนบอกรายละเอียดหรือเลขที่คำสั่งซื้อเพิ่มได้ไหมคะ",
        "en": "I'm sorry about that. I've noted it down for the shop. Could you tell me more, or the order number?",
    },
    "transaction": {
        "th": "รับทราบค่ะ เราจดไว้แล้ว แต่ยังไม่ใช่การยืนยันนะคะ ทางร้านจะเป็นผู้ยืนยันกับคุณลูกค้าอีกครั้งค่ะ",
        "en": "Got it, I've noted that down. It isn't confirmed yet: the shop will confirm it with you.",
    },
    "request": {
        "th": "รับทราบค่ะ เราจดไว้ให้ทางร้านแล้ว ทางร้านจะเป็นผู้ตอบเรื่องนี้นะคะ",
        "en": "Got it, I've noted that for the shop. They will get back to you about it.",
    },
    "a_bot": {
        "th": "ตอนนี้คุยกับระบบตอบอัตโนมัติของร้านอยู่ค่ะ ถ้าอยากคุยกับพนักงาน พิมพ์ว่า “ขอคุยกับพนักงาน” ได้เลยนะคะ",
        "en": "You're talking to the shop's automatic assistant. To reach a person, just write “talk to a person”.",
    },
    "own_case": {
        "th": "ขอโทษค่ะ เรื่องนี้ยังเช็กในแชตนี้ไม่ได้ เราจดคำถามไว้ให้ทางร้านตอบแล้วนะคะ",
        "en": "I can't look that up for you here. I've noted your question for the shop to answer.",
    },
    "noted": {
        "th": "ขอบคุณค่ะ เราจดไว้แล้วนะคะ",
        "en": "Thank you, I've made a note of that.",
    },
    "details": {
        "th": "ขอบคุณค่ะ เราจดรายละเอียดนี้ไว้ให้ทางร้านแล้วนะคะ",
        "en": "Thank you, I've added that to the note for the shop.",
    },
    "met": {
        "th": "ยินดีที่ได้รู้จักค่ะ คุณ{name} มีอะไรให้ช่วยบอกได้เลยนะคะ",
        "en": "Nice to meet you, {name}! What can I do for you?",
    },
    "feedback": {
        "th": "ขอบคุณที่บอกกันนะคะ เราจดไว้ให้ทางร้านแล้วค่ะ",
        "en": "Thank you for telling us! I've noted it for the shop.",
    },
    "page": {"th": "หน้า {number}", "en": "p. {number}"},
    "sources": {"th": "ที่มา:", "en": "Source:"},
    "staff_unknown_question": {
        "th": "ลูกค้าถามเรื่องที่ร้านยังไม่ได้เขียนคำตอบไว้ค่ะ",
        "en": "A customer asks what nothing of yours answers",
    },
    "if_you_mean": {"th": "ถ้าถามเรื่อง “{question}” นะคะ", "en": "If you're asking “{question}”:"},
    "did_you_mean": {
        "th": "ขอถามให้แน่ใจนะคะ หมายถึงเรื่องนี้หรือเปล่าคะ",
        "en": "I'm not sure I understood. Did you mean:",
    },
    "slow_down": {
        "th": "ขอโทษนะคะ ข้อความเข้ามาเร็วไปนิดหนึ่ง รบกวนรอสักครู่แล้วค่อยพิมพ์มาใหม่นะคะ",
        "en": "Sorry, that was a bit too fast for me. Please wait a minute, then write again.",
    },
    "cut": {
        "th": "ข้อความยาวมาก เราอ่านได้แค่ {count:,} ตัวอักษรแรกนะคะ",
        "en": "Your message was very long: I could only read the first {count:,} characters.",
    },
    "open_now": {"th": "ตอนนี้ร้านเปิดอยู่ค่ะ", "en": "We're open right now."},
    "closed_now": {"th": "ตอนนี้ร้านปิดอยู่ค่ะ", "en": "We're closed right now."},
    "hours_today": {"th": "วันนี้เปิด {hours} น. ค่ะ", "en": "Today's hours are {hours}."},
    "hours_tomorrow": {"th": "พรุ่งนี้เปิด {hours} น. ค่ะ", "en": "Tomorrow's hours are {hours}."},
    "closed_today": {"th": "วันนี้ร้านหยุดค่ะ", "en": "We're closed today."},
    "closed_tomorrow": {"th": "พรุ่งนี้ร้านหยุดค่ะ", "en": "We're closed tomorrow."},
    "hours_of_day": {"th": "วัน{day} เปิด {hours} น. ค่ะ", "en": "On {day}, our hours are {hours}."},
    "closed_day": {"th": "วัน{day} ร้านหยุดค่ะ", "en": "We're closed on {day}."},
    "hours_of_week": {"th": "เวลาเปิดของร้านค่ะ", "en": "Our opening hours:"},
    "closed": {"th": "หยุด", "en": "closed"},
    "soon": {"th": "เร็ว ๆ นี้", "en": "soon"},
    "customer": {"th": "ลูกค้า", "en": "there"},
    "shop_address": {"th": "ร้านอยู่ที่ {told} ค่ะ", "en": "You'll find us at {told}"},
    "shop_phone": {"th": "โทรหาร้านได้ที่ {told} ค่ะ", "en": "You can call us at {told}"},
    "shop_email": {"th": "อีเมลของร้านคือ {told} ค่ะ", "en": "Our email is {told}"},
    "shop_website": {"th": "เว็บไซต์ของร้านคือ {told} ค่ะ", "en": "Our website is {told}"},
    "price_one": {"th": "{what} {price}ค่ะ", "en": "{what}: {price}"},
    "price_list": {"th": "ราคาของร้านค่ะ", "en": "Our prices:"},
    "opens_again": {"th": "เปิดอีกครั้ง{when} ค่ะ", "en": "We open {when}."},
    "after_hours": {
        "th": "เราจดข้อความนี้ไว้ให้พนักงานแล้วค่ะ พนักงานจะตอบในแชตนี้เมื่อร้านเปิดนะคะ",
        "en": "I've noted your message for our staff. They will answer you here when we open.",
    },
    "after_hours_when": {
        "th": "เราจดข้อความนี้ไว้ให้พนักงานแล้วค่ะ พนักงานจะตอบในแชตนี้เมื่อร้านเปิด {when} นะคะ",
        "en": "I've noted your message for our staff. They will answer you here when we open {when}.",
    },
    "after_hours_more": {
        "th": "จดเพิ่มไว้ให้พนักงานแล้วค่ะ",
        "en": "I've added that to the note for our staff.",
    },
    "human_coming": {
        "th": "แจ้งพนักงานให้แล้วค่ะ พนักงานจะมาตอบในแชตนี้นะคะ ระหว่างนี้พิมพ์รายละเอียดทิ้งไว้ได้เลยค่ะ",
        "en": "I've told our staff. A person will answer you here; you can keep writing in the meantime.",
    },
    "human_when_open": {
        "th": "แจ้งพนักงานให้แล้วค่ะ ตอนนี้ร้านปิดอยู่ พนักงานจะมาตอบในแชตนี้เมื่อร้านเปิดนะคะ",
        "en": "I've told our staff. We're closed right now; a person will answer you here when we open.",
    },
    "human_for_complaint": {
        "th": "ต้องขอโทษเป็นอย่างมากนะคะ เรื่องนี้แจ้งพนักงานให้แล้วค่ะ พนักงานจะมาดูแลต่อในแชตนี้นะคะ",
        "en": "I'm very sorry about this. I've told our staff, and a person will answer you here.",
    },
    "human_already": {
        "th": "พนักงานได้รับเรื่องแล้วค่ะ จะมาตอบในแชตนี้นะคะ",
        "en": "Our staff have been told already and will answer you here.",
    },
    "human_noted": {
        "th": "ตอนนี้ยังเรียกพนักงานเข้ามาในแชตนี้ไม่ได้ค่ะ แต่จดไว้ให้ทางร้านแล้วว่าคุณลูกค้าอยากคุยกับพนักงาน ระหว่างนี้ถามบอตต่อได้เลยนะคะ",
        "en": (
            "I can't call a person into this chat. I've noted for the shop that you'd like to talk to someone; "
            "meanwhile I'm still here to help."
        ),
    },
    "human_unheard": {
        "th": "ขอโทษค่ะ ตอนนี้ยังติดต่อพนักงานไม่ได้ เราจดเรื่องนี้ไว้ให้ทางร้านแล้ว ระหว่างนี้ถามบอตต่อได้เลยนะคะ",
        "en": "Sorry, I couldn't reach our staff just now. I've noted it for the shop; until then I'm here to help.",
    },
    "bot_back": {
        "th": "กลับมาคุยกับบอตแล้วค่ะ มีอะไรให้ช่วยบอกได้เลยนะคะ",
        "en": "You're back with the bot. How can I help?",
    },
    "bot_here": {
        "th": "ตอนนี้คุยกับบอตอยู่แล้วค่ะ มีอะไรให้ช่วยบอกได้เลยนะคะ",
        "en": "You're talking to the bot already. How can I help?",
    },
    "news_stop": {"th": "ไม่รับข่าวสาร", "en": "No more news"},
    "news_stop_said": {"th": "หยุดรับข่าวสาร", "en": "unsubscribe"},  # what the button says
    "news_stopped": {
        "th": "ได้ค่ะ จะไม่ส่งข่าวสารมาอีกนะคะ ถามหรือสั่งได้ตามปกติเลยค่ะ ถ้าอยากรับอีกเมื่อไหร่ พิมพ์ว่า รับข่าวสาร",
        "en": "All right, no more news from us. You can ask and order as always. For news again, type: subscribe",
    },
    "news_again": {
        "th": "ขอบคุณค่ะ จะส่งข่าวสารให้นะคะ ไม่อยากรับเมื่อไหร่ พิมพ์ว่า หยุดรับข่าวสาร",
        "en": "Thank you, we'll send you our news. To end it, type: unsubscribe",
    },
    "staff_asked_for": {"th": "ลูกค้าขอคุยกับพนักงานค่ะ", "en": "A customer asks for a person."},
    "staff_complaint": {"th": "ลูกค้าร้องเรียนเรื่องสำคัญค่ะ", "en": "A customer has a serious complaint."},
    "staff_after_hours": {
        "th": "ลูกค้าทักมานอกเวลาทำการ รอคำตอบเมื่อร้านเปิดค่ะ",
        "en": "A customer wrote while the shop was closed and waits for an answer.",
    },
    "budget_day": {
        "th": "งบของบอตสำหรับวันนี้ใช้ครบแล้วค่ะ ถึงพรุ่งนี้บอตจะตอบด้วยคำตอบสำเร็จรูปของร้านเท่านั้น",
        "en": "The bot's budget for today is used up. Until tomorrow it answers from the shop's own answers alone.",
    },
    "budget_month": {
        "th": "งบของบอตสำหรับเดือนนี้ใช้ครบแล้วค่ะ ถึงสิ้นเดือนบอตจะตอบด้วยคำตอบสำเร็จรูปของร้านเท่านั้น",
        "en": "The bot's budget for this month is used up. Until it ends it answers from the shop's own answers alone.",
    },
    "staff_from": {"th": "จาก", "en": "From"},
    "staff_customer": {"th": "ลูกค้า", "en": "Customer"},
    "staff_bot": {"th": "บอต", "en": "Bot"},
    "staff_staff": {"th": "พนักงาน", "en": "Staff"},
    "staff_how": {
        "th": "ตอบกลับ (reply) ข้อความนี้เพื่อคุยกับลูกค้า หรือตอบกลับด้วย /{word} เพื่อให้บอตดูแลต่อค่ะ",
        "en": "Reply to this message to talk to the customer, or reply with /{word} to give them back to the bot.",
    },
    "staff_went_back": {"th": "ลูกค้ากลับไปคุยกับบอตแล้วค่ะ", "en": "The customer went back to the bot."},
    "staff_gave_back": {"th": "ให้บอตดูแลต่อแล้วค่ะ", "en": "The bot has taken over again."},
    "staff_unknown": {
        "th": "ไม่มีข้อมูลแล้วว่าข้อความนั้นเป็นของลูกค้าท่านใด รบกวนตอบกลับข้อความที่ใหม่กว่านะคะ",
        "en": "I no longer know which customer that message is about. Please reply to a newer one.",
    },
    "staff_words_only": {
        "th": "ส่งต่อให้ลูกค้าได้เฉพาะข้อความตัวอักษรค่ะ",
        "en": "I can only pass on text to the customer.",
    },
    "staff_undelivered": {
        "th": "ข้อความนี้ส่งไม่ถึงลูกค้าค่ะ",
        "en": "This message did not reach the customer:",
    },
}

# What is said instead when the text above was said a short while ago: nobody likes to hear a machine repeat itself.
AGAIN: dict[str, dict[Tongue, tuple[str, ...]]] = {
    "small_talk": {
        "th": ("ค่ะ ถ้ามีอะไรเพิ่มเติม พิมพ์มาได้เลยนะคะ",),
        "en": ("Alright! Just write if you need anything.",),
    },
    "sticker": {
        "th": ("😊 ถ้ามีอะไรให้ช่วย พิมพ์มาได้เลยนะคะ",),
        "en": ("😊 Just write if there is anything I can do for you.",),
    },
    "cannot_see": {
        "th": ("อันนี้ก็ได้รับแล้วค่ะ แต่ยังเปิดดูไม่ได้เหมือนกัน รบกวนพิมพ์บอกได้ไหมคะ",),
        "en": ("Got that one too, but I can't open it either. Could you put it in words?",),
    },
    "thanks": {"th": ("ยินดีเสมอค่ะ",), "en": ("Any time!",)},
    "complaint": {
        "th": (
            "ขอโทษอีกครั้งนะคะ เราจดเพิ่มไว้ให้ทางร้านแล้วค่ะ",
            "เข้าใจค่ะ ขอโทษที่ทำให้รู้สึกไม่ดีนะคะ เรื่องนี้จดไว้ครบแล้วค่ะ",
        ),
        "en": (
            "I'm sorry to hear that too. I've added it to the note for the shop.",
            "I understand, and I apologise. That is in the note for the shop as well.",
        ),
    },
    "transaction": {
        "th": ("จดเพิ่มให้แล้วค่ะ รอทางร้านยืนยันอีกครั้งนะคะ", "ได้ค่ะ จดไว้แล้ว ทางร้านยังต้องยืนยันอีกครั้งนะคะ"),
        "en": ("I've added that. The shop still has to confirm it.", "Noted. Please wait for the shop to confirm it."),
    },
    "request": {
        "th": ("จดเพิ่มให้แล้วค่ะ รอทางร้านตอบกลับนะคะ",),
        "en": ("I've added that for the shop as well.",),
    },
    "own_case": {
        "th": ("ข้อนี้ก็ต้องรอทางร้านตอบนะคะ เราจดไว้ให้แล้วค่ะ",),
        "en": ("That one is for the shop to answer too. I've noted it.",),
    },
    "noted": {"th": ("รับทราบค่ะ จดเพิ่มให้แล้วนะคะ",), "en": ("Got it, noted.",)},
}


def text(name: str, language: Tongue, **values: object) -> str:
    return TEXTS[name][language].format(**values) if values else TEXTS[name][language]


def wordings(name: str, language: Tongue) -> tuple[str, ...]:
    """The text and its other wordings."""
    return (TEXTS[name][language], *AGAIN.get(name, {}).get(language, ()))


def fresh(name: str, language: Tongue, said: Sequence[str]) -> str:
    """The text, or another wording of it when it stands in `said`, the bot's last lines, oldest first."""
    first, *others = wordings(name, language)
    unsaid = [one for one in (first, *others) if one not in said]
    if unsaid:
        return unsaid[0]
    newest_first = list(reversed(said))
    return max(others or [first], key=newest_first.index)
