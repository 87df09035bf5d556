"""Answers what is asked of a shop most, from its `shop` and `prices`, where its own list of answers has nothing."""

from __future__ import annotations

from collections.abc import Sequence

from config.tenants import Tenant
from gateway.rendering import literal
from gateway.texts import Tongue, text
from processors.language import detect
from processors.normalise import normalise
from processors.products import Products
from processors.sought import Sought

_MOST = 30  # goods in one list
# Over the normalised text. Whole questions: a customer's own address or number is not asked for.
_WHERE = Sought(
    r"(?:ร้าน|คลินิก|โรงแรม|สาขา)\S{0,6}?(?:อยู่|ตั้งอยู่)\S{0,4}?(?:ไหน|แถวไหน|ตรงไหน)|^(?:อยู่|ตั้งอยู่)(?:ที่ไหน|แถวไหน|ตรงไหน|ไหน)"
    r"|(?:ขอ|มี|ส่ง)\S{0,4}?(?:แผนที่|โลเคชั่น|โลเคชัน|พิกัด|ที่อยู่ร้าน|location)|ไปร้าน\S{0,6}ยังไง|ไปยังไง|เดินทางยังไง"
    r"|(?:ที่อยู่|แผนที่|โลเคชั่น|โลเคชัน|พิกัด)(?:ของ)?ร้าน"
    r"|\bwhere (?:are you|r u|is (?:the|your) (?:shop|store|cafe|café|clinic|hotel|place|branch))\b"
    r"|\b(?:your|the shop'?s?) (?:address|location)\b"
    r"|\bhow (?:do i|can i|to) (?:get|come) "
    r"(?:there|to (?:you|(?:the|your) (?:shop|store|place|cafe|café|clinic|hotel)))\b"
    r"|\b(?:what'?s|what is) the (?:address|location)\b(?! of my)"
    r"|\b(?:send|share|give|tell)(?: me)? the (?:address|location|map)\b(?! of my)"
)
_PHONE = Sought(
    r"(?:ขอ|มี)\S{0,6}?(?:เบอร์)(?!ของ(?:ผม|ฉัน|เรา|หนู))|เบอร์(?:ร้าน|โทร|ติดต่อ)\S{0,8}(?:อะไร|ไหม|กี่)|โทร(?:หา|ไป|ติดต่อ)?\S{0,12}(?:เบอร์ไหน|เบอร์อะไร|ได้ที่ไหน)"
    r"|ติดต่อ(?:ทาง)?ร้าน\S{0,4}(?:ทางไหน|ช่องทางไหน|ยังไง|ได้ที่ไหน)"
    r"|\b(?:your|the shop'?s?) (?:phone|telephone|contact)(?: number)?\b|\b(?:phone number|number) (?:to|can i) call\b"
    r"|\bhow (?:do i|can i) (?:call|phone|contact) (?:you|the shop)\b"
    r"|\b(?:do you have|is there|got) (?:a|any) (?:phone|telephone|contact)\b|\bcall you\b.{0,14}\bnumber\b"
    r"|^\W*(?:phone|telephone|contact)(?: number)?(?: please| pls)?\W*$"
)
_EMAIL = Sought(r"(?:ขอ|มี)\S{0,4}?(?:อีเมล|e-?mail)|\b(?:your|the shop'?s?|do you have an|is there an) e-?mail\b")
_SITE = Sought(
    r"(?:ขอ|มี)\S{0,4}?(?:เว็บ|เวป|website|ลิงก์เว็บ)|\b(?:your|the shop'?s?|do you have a|is there a) (?:web ?site|site)\b"
)
_PRICE = Sought(r"ราคา|เท่าไหร่|กี่บาท|กี่ตัง|แพงไหม|\bhow much\b|\bprices?\b|\bcosts?\b")
_LIST = Sought(
    r"(?:ขอ|มี|ดู)\S{0,6}?(?:เมนู|ราคา|เรทราคา|รายการ)|ราคา(?:เท่าไหร่|ยังไง|เป็นไง)?(?:บ้าง|ทั้งหมด)|เมนู\S{0,6}(?:อะไรบ้าง|ไหม)"
    r"|ขายอะไร|\b(?:price ?list|menu|prices)\b|\bwhat do you (?:sell|serve)\b"
)
_PRICE_ASKED = "ราคา"  # in any language: it is read, not said
_OWN = Sought(
    r"ของ(?:ผม|ฉัน|ดิฉัน|หนู|เรา)|ที่สั่ง|รวม|ทั้งหมด\S{0,6}เท่าไหร่|ค่าส่ง|ส่งฟรี|\bmy\b|\btotal\b|\bshipping\b|\bdelivery\b"
)


def about_shop(tenant: Tenant, products: Products, words: str, language: Tongue) -> str | None:
    """The answer; None: nothing of the kind was asked, or the shop does not say. `products`: see `priced`."""
    if not tenant.shop and not tenant.prices:
        return None
    plain = normalise(words)
    for asked, names in (
        (_WHERE, ("address", "map")),
        (_PHONE, ("phone",)),
        (_EMAIL, ("email",)),
        (_SITE, ("website",)),
    ):
        if asked.search(plain) and (told := _told(tenant, names, language)):
            return "\n".join([text(f"shop_{names[0]}", language, told=told[0]), *told[1:]])
    return _price(tenant, products, words, plain, language) if tenant.prices else None


def price_too(tenant: Tenant, products: Products, words: str, before: str, language: Tongue) -> str | None:
    """The answer to a follow-up that names goods alone: "and the mocha?", where `before` asked for a price."""
    if not tenant.prices or not _PRICE.search(normalise(before)) or not products.found(words):
        return None
    return _price(tenant, products, words, f"{normalise(words)} {_PRICE_ASKED}", language)


def priced(tenant: Tenant) -> Products:
    """What has a price, by every name that the shop gives it."""
    also = {one: names for names in tenant.products for one in names}
    return Products([(name, *also.get(name, ())) for name in tenant.prices])


def facts(tenant: Tenant, language: Tongue) -> str:
    """What the shop says of itself, for a model; "" where it says nothing."""
    own = [f"{name}: {said.within(language)}" for name, said in tenant.shop.items()]
    goods = [f"{name}: {price.within(language)}" for name, price in list(tenant.prices.items())[:_MOST]]
    return "\n".join([*own, *goods])


def _told(tenant: Tenant, names: Sequence[str], language: Tongue) -> list[str]:
    return [tenant.shop[name].within(language) for name in names if name in tenant.shop]


def _price(tenant: Tenant, products: Products, words: str, plain: str, language: Tongue) -> str | None:
    asked = _PRICE.search(plain) or _LIST.search(plain)
    if not asked or _OWN.search(plain):
        return None
    named = [one["name"] for one in products.found(words)]
    if not named and not _LIST.search(plain):
        return None
    shown = named or list(tenant.prices)[:_MOST]
    told = [(literal(_called(tenant, name, language)), tenant.prices[name].within(language)) for name in shown]
    if len(told) == 1:
        return text("price_one", language, what=told[0][0], price=told[0][1])
    lines = [f"- {name} {price}" for name, price in told]
    return "\n".join([text("price_list", language), *lines])


def _called(tenant: Tenant, name: str, language: Tongue) -> str:
    """What has a price by the name that the shop gives it in the customer's language, where it gives one."""
    names = next((names for names in tenant.products if name in names), ())
    return name if detect(name) == language else next((one for one in names if detect(one) == language), name)
