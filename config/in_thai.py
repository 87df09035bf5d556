"""The mistakes of tenant files in Thai. English is what logs and the API speak, and what a phrase without a line here
stays in. `{}` stands for whatever stands there: names, numbers, or a phrase that is looked up as well.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

from config.mistakes import Mistake

_WHAT = {
    "is missing": "ยังไม่มี",
    "asks for encryption, and there is no key": "ขอให้เข้ารหัสข้อมูล แต่ยังไม่มีกุญแจ",
    "is not a known field": "เป็นชื่อช่องที่ระบบไม่รู้จัก",
    "is empty": "ว่างอยู่",
    "stands twice, first in line {}": "เขียนซ้ำสองครั้ง ครั้งแรกอยู่บรรทัดที่ {}",
    "is indented with a tab": "เว้นหน้าบรรทัดด้วยแท็บ (Tab)",
    "is indented by {} spaces, which fits nothing above it": "เว้นหน้าบรรทัด {} ช่อง ไม่ตรงกับบรรทัดใดด้านบน",
    "stands further in than line {}, which is a whole field already": ("เว้นหน้าบรรทัดลึกกว่าบรรทัดที่ {} ทั้งที่บรรทัดนั้นจบในตัวแล้ว"),
    "stands where a name should": "อยู่ในตำแหน่งที่ควรเป็นชื่อ",
    "has no space after the colon": "ไม่มีเว้นวรรคหลังเครื่องหมาย :",
    "has no space after a colon": "ไม่มีเว้นวรรคหลังเครื่องหมาย :",
    "has a full-width colon (：)": "ใช้เครื่องหมาย ： แบบกว้าง",
    "has a colon inside a text": "มีเครื่องหมาย : อยู่ในข้อความ",
    "has a quote that is never closed": "เปิดเครื่องหมายคำพูดแล้วไม่ได้ปิด",
    "stands in curly quotes, which YAML takes for letters": "ใช้เครื่องหมายคำพูดแบบโค้ง “ ” ซึ่งระบบอ่านเป็นตัวอักษร",
    "has a bracket that is not closed, or a comma missing inside": "วงเล็บไม่ได้ปิด หรือขาดเครื่องหมายจุลภาค (,) ข้างใน",
    "has something after its value": "มีข้อความต่อท้ายค่าที่จบแล้ว",
    "begins with a character that YAML keeps for itself": "ขึ้นต้นด้วยเครื่องหมายที่ใช้ขึ้นต้นไม่ได้",
    "has an invisible character before or in its name": "มีอักขระที่มองไม่เห็นอยู่หน้าชื่อหรือในชื่อ",
    "holds a control character": "มีอักขระควบคุมที่มองไม่เห็น",
    "is not valid YAML: {}": "เขียนไม่ถูกรูปแบบ YAML: {}",
    "has a YAML tag": "มีเครื่องหมาย ! ของ YAML",
    "uses a merge key (<<)": "ใช้ << ซึ่งไม่รองรับ",
    "has a field whose name is no word": "มีช่องที่ชื่อไม่ใช่คำ",
    "is nested too deep or repeats too much": "ซ้อนลึกหรือซ้ำมากเกินไป",
    "is not a set of fields": "ไม่ได้เขียนเป็นช่อง `ชื่อ: ค่า`",
    "is not UTF-8 text": "ไม่ได้บันทึกเป็น UTF-8",
    "is saved as UTF-16 (Windows calls it Unicode)": "บันทึกเป็น UTF-16 (ใน Windows เรียกว่า Unicode)",
    "is larger than {} KiB": "ใหญ่เกิน {} KiB",
    "does not exist": "ไม่มีอยู่",
    "is not a file": "ไม่ใช่ไฟล์",
    "can't be read": "อ่านไม่ได้",
    "can't be read ({})": "อ่านไม่ได้ ({})",
    "does not end in .yaml": "ชื่อไฟล์ไม่ได้ลงท้ายด้วย .yaml",
    "has a name that is no tenant id": "ชื่อไฟล์ใช้เป็นรหัสร้านไม่ได้",
    "tenant {} needs the variable {}, which is not set": "ร้าน {} ต้องใช้ตัวแปร {} แต่ยังไม่ได้ตั้งค่า",
    "tenant {} needs {}, but {} names a file that does not exist": "ร้าน {} ต้องใช้ {} แต่ไฟล์ที่ {} ระบุไว้ไม่มีอยู่",
    "tenant {} needs {}, whose file {} is not UTF-8 text": "ร้าน {} ต้องใช้ {} แต่ไฟล์ {} ไม่ได้บันทึกเป็น UTF-8",
    "tenant {} needs {}, whose file {} can't be read ({})": "ร้าน {} ต้องใช้ {} แต่ไฟล์ {} อ่านไม่ได้ ({})",
    "tenant {} needs {}, whose file {} is empty or too big": "ร้าน {} ต้องใช้ {} แต่ไฟล์ {} ว่างหรือใหญ่เกินไป",
    "tenant {} holds `${` with no variable's name after it": "ร้าน {}: มี `${` แต่ไม่มีชื่อตัวแปรต่อท้าย",
    "tenant {} names a file outside CONFIG_DIR": "ร้าน {} ระบุไฟล์ที่อยู่นอกโฟลเดอร์ config",
    "tenant {} names a file that does not exist": "ร้าน {} ระบุไฟล์ที่ไม่มีอยู่",
    "tenant {} names a file that can't be found": "ร้าน {} ระบุไฟล์ที่หาไม่พบ",
    "tenant {} names no file": "ร้าน {} ไม่ได้ระบุไฟล์",
    "names a file that {}": "ระบุไฟล์ที่{}",
    "names no file": "ไม่ได้ระบุไฟล์",
    "names a file outside the config folder": "ระบุไฟล์ที่อยู่นอกโฟลเดอร์ config",
    "names a template that does not exist": "ระบุไฟล์แม่แบบที่ไม่มีอยู่",
    "names a template that can't be found": "ระบุไฟล์แม่แบบที่หาไม่พบ",
    "leads back to itself: {}": "ไฟล์แม่แบบวนกลับมาหาตัวเอง: {}",
    "is the template of a template over {} levels": "ไฟล์แม่แบบซ้อนกันเกิน {} ชั้น",
    "is a variable's name without `${` and `}` around it": "เป็นชื่อตัวแปรที่ไม่มี `${` และ `}` ครอบ",
    "begins with the word Bearer": "ขึ้นต้นด้วยคำว่า Bearer",
    "ends or begins with a space or a line break": "มีช่องว่างหรือขึ้นบรรทัดใหม่ติดมาหน้าหรือหลังรหัส",
    "holds white space or characters outside ASCII, or is empty": "มีช่องว่าง มีตัวอักษรที่ไม่ใช่อังกฤษ หรือว่างอยู่",
    "is a Telegram bot's token": "เป็นโทเคนของบอต Telegram ไม่ใช่ของ LINE",
    "is a channel access token, not the channel secret": "เป็น channel access token ไม่ใช่ channel secret",
    "is the channel secret, not an access token": "เป็น channel secret ไม่ใช่ access token",
    "is a key of LINE, not a Telegram bot's token": "เป็นรหัสของ LINE ไม่ใช่โทเคนของบอต Telegram",
    "has no platform": "ไม่ได้บอกว่าเป็นแพลตฟอร์มใด",
    "has an unknown platform": "เป็นแพลตฟอร์มที่ไม่รู้จัก",
    "is none of {}": "ต้องเป็นคำใดคำหนึ่งใน {}",
    "is not a name": "ใช้เป็นชื่อไม่ได้",
    "is out of range": "ค่าอยู่นอกช่วงที่ใช้ได้",
    "should be a text": "ต้องเป็นข้อความ",
    "should be a whole number": "ต้องเป็นจำนวนเต็ม",
    "should be a number": "ต้องเป็นตัวเลข",
    "should be true or false": "ต้องเป็น true หรือ false",
    "should be a section of fields": "ต้องเป็นหมวดที่มีช่องย่อย",
    "should be a list": "ต้องเป็นรายการ",
    "can't be used": "ใช้ไม่ได้",
    "is not an http(s) address": "ไม่ใช่ที่อยู่ http(s)",
    "is not an origin": "ไม่ใช่ที่อยู่ของเว็บไซต์แบบไม่มีหน้าย่อย",
    "is not a time zone": "ไม่ใช่เขตเวลา",
    "is not the SHA-256 of a key": "ไม่ใช่ค่า SHA-256 ของคีย์",
    "is not a secret that Telegram takes": "Telegram ไม่รับรหัสลับแบบนี้",
    "is not a command's name": "ใช้เป็นชื่อคำสั่งไม่ได้",
    "is not a user's id": "ไม่ใช่รหัสผู้ใช้",
    "is not an https address that anybody can open": "ไม่ใช่ที่อยู่ https ที่ใครก็เปิดได้",
    "is not a host's name": "ไม่ใช่ชื่อเว็บไซต์",
    "is not a sticker's number": "ไม่ใช่หมายเลขสติกเกอร์",
    "is not a day or a range of days": "ไม่ใช่วันหรือช่วงวัน",
    "is not a day or a span of days": "ไม่ใช่วันที่หรือช่วงวันที่",
    "names the year of one end alone": "ระบุปีไว้ข้างเดียว",
    "ends before it begins": "วันสิ้นสุดมาก่อนวันเริ่ม",
    "is not a block of hours": "ไม่ใช่ช่วงเวลา",
    "opens and closes at the same minute": "เวลาเปิดกับเวลาปิดเป็นเวลาเดียวกัน",
    "the blocks of {} overlap": "ช่วงเวลาของวัน {} ทับกัน",
    "{} stands in more than one row": "วัน {} อยู่หลายบรรทัด",
    "has no channel_access_token, so nothing can be answered": "ไม่มี channel_access_token จึงตอบลูกค้าไม่ได้",
    "has no webhook_secret, so anyone could forge messages": "ไม่มี webhook_secret ใครก็ปลอมข้อความได้",
    "has a debounce_max_ms below debounce_ms": "debounce_max_ms น้อยกว่า debounce_ms",
    "has two commands /{}": "มีคำสั่ง /{} สองคำสั่ง",
    "is not one of image, file and sticker": "ต้องเป็นอย่างใดอย่างหนึ่ง: image, file หรือ sticker",
    "stands beside instructions": "อยู่คู่กับ instructions",
    "is another name for default": "เป็นอีกชื่อหนึ่งของ default",
    "has a variable that is not known": "มีตัวแปรที่ระบบไม่รู้จัก",
    "needs two agents that can be told apart": "ต้องมี agent อย่างน้อยสองตัวที่บอกหน้าที่ต่างกัน",
    "is not a span of hours": "ไม่ใช่ช่วงเวลา",
    "needs business_hours, which this file does not give": "ต้องใช้ business_hours แต่ไฟล์นี้ไม่ได้เขียนไว้",
    "is none of this tenant's channels": "ไม่ใช่ชื่อช่องทางของร้านนี้",
    "is a channel that can't reach staff": "ช่องทางนี้ส่งข้อความถึงพนักงานไม่ได้",
    "has the same token as another channel": "ใช้โทเคนเดียวกับช่องทางอื่น",
    "has the same token as channel {} of tenant {}": "ใช้โทเคนเดียวกับช่องทาง {} ของร้าน {}",
    "holds always": "เป็นจริงเสมอ",
    "stands under {} too": "คำนี้อยู่ใต้ {} ด้วย",
}

_REMEDY = {
    "did you mean {}?": "หมายถึง {} หรือไม่",
    "did you mean {}? It belongs under {}": "หมายถึง {} หรือไม่ ให้ย้ายไปไว้ใต้ {}",
    "remove it; known here: {}": "ลบออก ช่องที่ใช้ได้ตรงนี้: {}",
    "remove it: the file's name is the tenant's id": "ลบออก ชื่อไฟล์คือรหัสร้านอยู่แล้ว",
    "add {}: ${{}} and set {} in the environment or in config/secrets/{}": (
        "เพิ่ม {0}: ${{{1}}} แล้วตั้งค่า {2} ใน .env หรือในไฟล์ config/secrets/{3}"
    ),
    "add {}: …": "เพิ่ม {}: …",
    "add platform: {} (one of them)": "เพิ่ม platform: แล้วเลือกหนึ่งใน {}",
    "write one of {}": "เลือกหนึ่งใน {}",
    "keep one of the two": "เหลือไว้เพียงอันเดียว",
    "indent with spaces: YAML takes no tabs there": "ลบแท็บออก แล้วกดเว้นวรรคแทน",
    "indent it by {} spaces": "เว้นหน้าบรรทัด {} ช่อง",
    "begin it in the same column as line {}": "ให้ขึ้นต้นตรงกับบรรทัดที่ {}",
    "begin it in column 1": "ให้ชิดซ้ายสุด",
    "indent it further in: it belongs to the name above it": "เว้นหน้าบรรทัดให้ลึกขึ้น เพราะเป็นของชื่อด้านบน",
    "write `{}`": "เขียนเป็น `{}`",
    "type a plain colon and a space": "พิมพ์ : ธรรมดาแล้วเว้นวรรค",
    "put the whole text in quotes": 'ครอบข้อความทั้งหมดด้วยเครื่องหมาย "…"',
    "close the quotes": "ปิดเครื่องหมายคำพูดให้ครบ",
    'type straight ones ("), or put straight ones around them if customers should see them': (
        'พิมพ์เครื่องหมายตรง (") แทน หรือครอบด้วยเครื่องหมายตรงถ้าอยากให้ลูกค้าเห็น'
    ),
    "separate what stands inside by commas, and close each [ with ] and each { with }": (
        "คั่นแต่ละอย่างด้วย , และปิด [ ด้วย ] ปิด { ด้วย } ให้ครบ"
    ),
    "put a value that begins with @, %, *, & or ` in quotes": 'ค่าที่ขึ้นต้นด้วย @ % * & หรือ ` ให้ครอบด้วย "…"',
    "delete it and type plain spaces": "ลบแล้วพิมพ์เว้นวรรคใหม่",
    "delete the invisible character in that place": "ลบอักขระที่มองไม่เห็นตรงนั้น",
    "check quotes, brackets and indentation in this line and the one before": (
        "ตรวจเครื่องหมายคำพูด วงเล็บ และการเว้นหน้าบรรทัดของบรรทัดนี้กับบรรทัดก่อนหน้า"
    ),
    "write the plain value, without `!`": "เขียนค่าเฉย ๆ ไม่ต้องมี `!`",
    "write the fields out": "เขียนช่องทั้งหมดออกมา",
    "put braces in quotes": 'ครอบวงเล็บปีกกาด้วย "…"',
    "write it out plainly": "เขียนออกมาตรง ๆ",
    "write fields as `name: …`, one a line": "เขียนบรรทัดละหนึ่งช่อง เช่น `name: …`",
    "write a tenant in it: `chat-chat tenants new ID` shows how": "ดูตัวอย่างได้ด้วย `chat-chat tenants new ID`",
    "save the file as UTF-8 in the editor": "สั่งบันทึกเป็น UTF-8 ในโปรแกรมแก้ไข",
    "save that file as UTF-8": "บันทึกไฟล์นั้นเป็น UTF-8",
    "keep long instructions in instructions_file": "ย้ายข้อความยาว ๆ ไปไว้ใน instructions_file",
    "check its path": "ตรวจชื่อและที่อยู่ของไฟล์",
    "put a file in its place": "วางไฟล์ไว้แทน",
    "let the user that runs the bot read it": "ให้สิทธิ์ผู้ใช้ที่รันบอตอ่านไฟล์นี้",
    "let the user that runs the bot read that file": "ให้สิทธิ์ผู้ใช้ที่รันบอตอ่านไฟล์นั้น",
    "rename it to {}.yaml: 1 to 64 of a-z, 0-9, _ and -, beginning with a letter or digit": (
        "เปลี่ยนชื่อเป็น {}.yaml ใช้ a-z, 0-9, _ และ - ได้ 1–64 ตัว ขึ้นต้นด้วยตัวอักษรหรือตัวเลข"
    ),
    "use 1 to 64 of a-z, 0-9, _ and -, beginning with a letter or digit": (
        "ใช้ a-z, 0-9, _ และ - ได้ 1–64 ตัว ขึ้นต้นด้วยตัวอักษรหรือตัวเลข"
    ),
    "rename it to {}": "เปลี่ยนชื่อเป็น {}",
    "set {} in the environment, or write it to {}": "ตั้งค่า {} ใน .env หรือเขียนไว้ในไฟล์ {}",
    "correct that path": "แก้ที่อยู่ไฟล์ให้ถูก",
    "write the value alone into that file": "เขียนเฉพาะค่าลงในไฟล์นั้น",
    "write ${NAME}, or $${ for the characters ${": "เขียน ${ชื่อตัวแปร} หรือ $${ ถ้าต้องการตัวอักษร ${ จริง ๆ",
    "write ${NAME}": "เขียนเป็น ${ชื่อตัวแปร}",
    "name a file relative to the tenant's file or to {}, such as prompts/shop.md": (
        "ระบุไฟล์ที่อยู่ข้างไฟล์ร้านหรือใน {} เช่น prompts/shop.md"
    ),
    "name a plain file inside CONFIG_DIR": "ระบุไฟล์ธรรมดาที่อยู่ในโฟลเดอร์ config",
    "name a file beside this one or in the config folder, such as base.yaml": (
        "ระบุไฟล์ที่อยู่ข้างไฟล์นี้หรือในโฟลเดอร์ config เช่น base.yaml"
    ),
    "remove it from one of these files": "ลบออกจากไฟล์ใดไฟล์หนึ่งในนี้",
    "put some of them together": "รวมบางไฟล์เข้าด้วยกัน",
    "paste the value alone, without that word": "วางเฉพาะรหัส ไม่ต้องมีคำนั้น",
    "paste the value alone": "วางเฉพาะรหัสอย่างเดียว",
    "remove it where the value is kept: in .env, in its file, or in the Kubernetes secret (echo -n)": (
        "ลบออกจากที่ที่เก็บรหัสไว้: ใน .env ในไฟล์ หรือใน Kubernetes secret (ใช้ echo -n)"
    ),
    "copy LINE's channel secret: Developers Console, Basic settings": (
        "คัดลอก channel secret จาก LINE Developers Console หน้า Basic settings"
    ),
    "swap the two, or copy the channel secret: Developers Console, Basic settings": (
        "สลับสองค่านี้ หรือคัดลอก channel secret จาก LINE Developers Console หน้า Basic settings"
    ),
    "copy LINE's long-lived channel access token: Developers Console, Messaging API": (
        "คัดลอก channel access token (long-lived) จาก LINE Developers Console หน้า Messaging API"
    ),
    "swap the two, or issue a channel access token: Developers Console, Messaging API": (
        "สลับสองค่านี้ หรือออก channel access token ใน LINE Developers Console หน้า Messaging API"
    ),
    "copy the token from @BotFather: 123456:ABC…": "คัดลอกโทเคนจาก @BotFather เช่น 123456:ABC…",
    "put it in quotes": 'ครอบด้วยเครื่องหมาย "…"',
    "write a text": "เขียนเป็นข้อความ",
    "write it, or leave the field out": "เขียนให้ครบ หรือลบช่องนี้ออก",
    "write the text, or leave the field out": "เขียนข้อความ หรือลบช่องนี้ออก",
    "write {th: …, en: …} or a text, in quotes if it looks like a number": (
        'เขียน {{th: …, en: …}} หรือข้อความ ถ้าดูเหมือนตัวเลขให้ครอบด้วย "…"'
    ),
    "use 1 to 64 letters a-z, digits, _ and -, beginning with a letter or digit": (
        "ใช้ a-z ตัวเลข _ และ - ได้ 1–64 ตัว ขึ้นต้นด้วยตัวอักษรหรือตัวเลข"
    ),
    "write at least {}": "ต้องไม่น้อยกว่า {}",
    "write at most {}": "ต้องไม่เกิน {}",
    "write more than {}": "ต้องมากกว่า {}",
    "write less than {}": "ต้องน้อยกว่า {}",
    "write digits alone, such as 10": "เขียนเป็นตัวเลขล้วน เช่น 10",
    "write a number, such as 0.5": "เขียนเป็นตัวเลข เช่น 0.5",
    "write true or false": "เขียน true (ใช่) หรือ false (ไม่ใช่)",
    "write its fields below it, indented, as `field: value`": "เขียนช่องย่อยไว้บรรทัดล่าง เว้นหน้าบรรทัด เช่น `ช่อง: ค่า`",
    "write [one, two], or each below it as `- one`": "เขียน [หนึ่ง, สอง] หรือบรรทัดละอันแบบ `- หนึ่ง`",
    "compare it with config/examples/full.yaml": "เทียบกับ config/examples/full.yaml",
    "write an address such as {}": "เขียนที่อยู่เช่น {}",
    "write scheme and host alone, such as {}": "เขียนเฉพาะชื่อเว็บ เช่น {}",
    "write a name such as {}": "เขียนชื่อเช่น {}",
    "write sha256: and 64 hex digits; `printf %s KEY | sha256sum` prints them": (
        "เขียน sha256: ตามด้วยเลขฐานสิบหก 64 ตัว ดูได้จาก `printf %s KEY | sha256sum`"
    ),
    "use 1 to 256 of A-Z, a-z, 0-9, _ and -": "ใช้ A-Z, a-z, 0-9, _ และ - ได้ 1–256 ตัว",
    "use 1 to 32 of a-z, 0-9 and _; or false to switch the command off": (
        "ใช้ a-z, 0-9 และ _ ได้ 1–32 ตัว หรือ false เพื่อปิดคำสั่ง"
    ),
    "write it with its platform, such as {}": "เขียนพร้อมแพลตฟอร์ม เช่น {}",
    "write one such as {}, of at most 2000 characters, as a browser copies it": (
        "เขียนที่อยู่เช่น {} ไม่เกิน 2000 ตัวอักษร ตามที่คัดลอกจากเบราว์เซอร์"
    ),
    "write the name alone, such as {}": "เขียนเฉพาะชื่อ เช่น {}",
    'write digits, such as "446"; LINE lists those that bots may send': 'เขียนตัวเลข เช่น "446" LINE มีรายการที่บอตส่งได้',
    "write mon, tue, wed, thu, fri, sat, sun: {}": "เขียน mon, tue, wed, thu, fri, sat, sun: {}",
    "such as mon-fri or sat": "เช่น mon-fri หรือ sat",
    'write "2026-12-31", "12-31" for every year, or "2027-04-12..2027-04-17"': (
        'เขียน "2026-12-31" หรือ "12-31" สำหรับทุกปี หรือ "2027-04-12..2027-04-17"'
    ),
    "write it with both, or with neither": "เขียนปีทั้งสองข้าง หรือไม่ต้องเขียนเลย",
    "write the earlier day first": "เขียนวันที่มาก่อนไว้ข้างหน้า",
    'write the opening and closing time, such as "09:00-18:00"': 'เขียนเวลาเปิดและเวลาปิด เช่น "09:00-18:00"',
    'write "00:00-24:00" for the whole day': 'เปิดทั้งวันให้เขียน "00:00-24:00"',
    "let each block end before the next begins": "ให้แต่ละช่วงจบก่อนช่วงถัดไปเริ่ม",
    "give each day one row": "วันหนึ่งเขียนบรรทัดเดียว",
    "add channel_access_token, or channel_id: tokens are then made with it and the secret": (
        "เพิ่ม channel_access_token หรือเพิ่ม channel_id แล้วระบบจะออกโทเคนให้เอง"
    ),
    "add webhook_secret: a random text of A-Z, a-z, 0-9, _ and -; or mode: polling": (
        "เพิ่ม webhook_secret: เป็นข้อความสุ่ม A-Z a-z 0-9 _ - หรือใช้ mode: polling"
    ),
    "raise debounce_max_ms, or lower debounce_ms": "เพิ่ม debounce_max_ms หรือลด debounce_ms",
    "give each a name of its own, or switch one off with false": "ตั้งชื่อให้ต่างกัน หรือปิดอันหนึ่งด้วย false",
    "write each as an entry of its own": "แยกเขียนเป็นคนละรายการ",
    "add a LINE or Telegram channel": "เพิ่มช่องทาง LINE หรือ Telegram",
    "give each channel its own token, or keep one of the two": "ใช้โทเคนของแต่ละช่องทาง หรือเหลือไว้ช่องทางเดียว",
    "give each tenant its own channel, or remove it from one of the two": "ใช้ช่องทางของแต่ละร้าน หรือลบออกจากร้านหนึ่ง",
    "add channels, hours or keywords; who answers otherwise is the agent default": (
        "เพิ่ม channels, hours หรือ keywords ถ้าไม่เข้าเงื่อนไขใด ผู้ตอบคือ default"
    ),
    "keep it under one of them": "เหลือไว้ใต้หัวข้อเดียว",
    "give each agent an `about`: what it is for": "เขียน about ให้แต่ละ agent ว่ามีหน้าที่อะไร",
    "write one of {}, or add {}: … under shop": "เลือกหนึ่งใน {} หรือเพิ่ม {}: … ใต้ shop",
    'write "21:00-08:00", closed (outside business_hours) or false': (
        'เขียน "21:00-08:00" หรือ closed (เมื่อร้านปิด) หรือ false (ไม่มีช่วงงดส่ง)'
    ),
    'add business_hours, or write hours such as "21:00-08:00"': 'เพิ่ม business_hours หรือเขียนช่วงเวลา เช่น "21:00-08:00"',
}


def in_thai(mistake: Mistake) -> Mistake:
    """The same mistake, told in Thai as far as there are words for it."""
    return replace(mistake, what=thai(mistake.what), remedy=thai(mistake.remedy))


def thai(phrase: str) -> str:
    """A phrase in Thai; unchanged where there is no line for it."""
    if re.fullmatch(r"[\d, ]+ or \d+", phrase):
        return phrase.replace(" or ", " หรือ ")
    for pattern, words in _patterns():
        if found := pattern.fullmatch(phrase):
            return _filled(words, tuple(map(thai, found.groups())))
    return phrase


def _filled(words: str, found: tuple[str, ...]) -> str:
    if "{0}" in words:
        return words.format(*found)
    parts = [one.replace("{{", "{").replace("}}", "}") for one in words.split("{}")]
    return "".join(one + value for one, value in zip(parts, (*found, ""), strict=True))


@cache
def _patterns() -> list[tuple[re.Pattern[str], str]]:
    every = [*_WHAT.items(), *_REMEDY.items()]
    every.sort(key=lambda pair: len(pair[0].replace("{}", "")), reverse=True)  # of two that fit, what says more
    return [(re.compile(re.escape(english).replace(r"\{\}", "(.+?)")), words) for english, words in every]
