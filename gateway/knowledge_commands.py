"""What `chat-chat knowledge` does."""

from __future__ import annotations

from collections.abc import Sequence

from config.settings import Settings
from config.tenants import Tenant, Tenants
from gateway import sources
from gateway.assembly import vault_of
from gateway.cli.common import Failed
from gateway.memory_commands import manager_of
from gateway.per_tenant import PerTenant
from gateway.responder import Responder
from gateway.texts import Tongue
from memory.keys import check_tenant
from memory.library.library import FileState, Library, sure
from memory.unanswered import UnansweredQuestions
from processors.event_processor import EventProcessor
from processors.language import answer_language
from processors.openrouter import OpenRouter


async def listed(settings: Settings, tenant: str) -> tuple[list[str], bool]:
    """Each file with its passages; whether all of them can be used."""
    async with manager_of(settings) as manager:
        files = await manager.library.files(_known(settings, tenant).id)
    return _lines(settings, tenant, files)


async def reindex(settings: Settings, tenant: str) -> tuple[list[str], bool]:
    """Every file read anew, and its vectors made."""
    async with manager_of(settings) as manager:
        files = await manager.library.refresh(_known(settings, tenant).id, anew=True)
    return _lines(settings, tenant, files)


async def ask(settings: Settings, tenant: str, question: str) -> list[str]:
    """What would be found for a customer's question, and what would come of it without a language model."""
    shop = _known(settings, tenant)
    language: Tongue = "en" if shop.speaks(answer_language(question, None)) == "en" else "th"
    async with manager_of(settings) as manager:
        await manager.library.refresh(shop.id)
        responder = Responder(OpenRouter(), PerTenant(lambda _: EventProcessor()), manager.library)
        return [*_answers(shop, responder, question), *await _passages(manager.library, shop, question, language)]


def unanswered(settings: Settings, tenant: str) -> list[str]:
    """What nobody could answer, most people first."""
    found = _unanswered(settings).all(check_tenant(tenant))
    return [
        f"{one.id}  {one.times}x  {one.last_at:%Y-%m-%d}  {one.question}{f'  (near: {one.near})' if one.near else ''}"
        for one in found
    ] or ["every question had an answer"]


def _unanswered(settings: Settings) -> UnansweredQuestions:
    tenants = Tenants(settings)
    tenants.load()
    return UnansweredQuestions(settings.data_dir / "unanswered", vault_of(settings, tenants))


def answered(settings: Settings, tenant: str, ids: Sequence[str]) -> str:
    gone = _unanswered(settings).drop(check_tenant(tenant), ids)
    return f"{gone} taken off the list"


def _answers(shop: Tenant, responder: Responder, question: str) -> list[str]:
    best, near = responder.fitting(shop, question)
    out = []
    for one in near:
        sure = best is not None and best.sure and best.index == one.index
        what = f"faq, sure {best.certainty:.2f}" if sure and best else "faq, to be offered"
        out.append(f"{one.score:.2f}  {what}  {shop.faq[one.index].questions[0]}")
    return out or ["no answer of the faq fits"]


async def _passages(library: Library, shop: Tenant, question: str, language: Tongue) -> list[str]:
    found = await library.find(shop.id, question, 5)
    out, told = [], sure(found)
    for one in found:
        mark = ", sure" if one is told else ""
        words = " ".join(one.passage.text.split())
        out.append(f"{one.score:.2f}  {one.file}{mark}  {sources.label(one, language)}: {words[:160]}")
    return out or ["nothing in the files fits"]


def _lines(settings: Settings, tenant: str, files: Sequence[FileState]) -> tuple[list[str], bool]:
    folder = settings.config_dir / "knowledge" / tenant
    lines = []
    for one in files:
        state = f"{one.error}: {one.remedy}" if one.error else "is being written" if one.waits else "ok"
        lines.append(f"{folder / one.name}  {one.passages} passage{'s' * (one.passages != 1)}  {state}")
    return lines or [f"{folder} holds no files: put .md, .txt, .csv or .pdf there"], not any(one.error for one in files)


def _known(settings: Settings, tenant: str) -> Tenant:
    tenants = Tenants(settings)
    tenants.load()
    found = tenants.get(check_tenant(tenant))
    if found is None:
        raise Failed(f"there is no tenant {tenant!r} that works: see `chat-chat tenants check`")
    return found
