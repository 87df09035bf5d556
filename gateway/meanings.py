"""Which embeddings each tenant searches with."""

from __future__ import annotations

from config.settings import Settings
from config.tenants import Tenants
from gateway.budgets import Budgets
from gateway.metered import MeteredEmbeddings, Used
from processors.embeddings import LOCAL, LOCAL_E5, NONE, Embeddings, RemoteEmbeddings, make
from processors.llm import Access
from processors.pii import Kind
from processors.shielded import MaskedEmbeddings

_Place = tuple[str, str, str | None]  # model, address, key


class Meanings:
    """One object a model and place, shared by the tenants that use it; with `budgets` each pays for its own."""

    def __init__(
        self, settings: Settings, tenants: Tenants, budgets: Budgets | None = None, used: Used | None = None
    ) -> None:
        self._settings = settings
        self._tenants = tenants
        self._budgets = budgets
        self._used = used
        self._made: dict[_Place, Embeddings | None] = {}
        self._theirs: dict[tuple[str, _Place, tuple[Kind, ...]], Embeddings] = {}

    def of(self, tenant_id: str) -> Embeddings | None:
        """None: by words alone. A key goes only where it belongs: to the address it was given with."""
        settings, tenant = self._settings, self._tenants.get(tenant_id)
        name = tenant.memory.embeddings if tenant else settings.embeddings
        base, key = settings.openrouter_base_url, settings.openrouter_api_key
        if name in (NONE, LOCAL, LOCAL_E5):
            base, key = "", None
        elif settings.embeddings_base_url is not None:
            base, key = settings.embeddings_base_url, settings.embeddings_api_key
        elif tenant is not None:
            base = tenant.llm.base_url
            key = tenant.llm.api_key.get_secret_value() if tenant.llm.api_key else None
        place = (name, base, key)
        if place not in self._made:
            self._made[place] = make(name, Access(key, base or Access(None).base_url))
        made = self._made[place]
        if not isinstance(made, RemoteEmbeddings) or tenant is None:
            return made
        kinds = tenant.privacy.withhold
        mine = (tenant_id, place, kinds)
        if mine not in self._theirs:
            theirs: Embeddings = made
            if self._budgets is not None:
                account = Access(key, base or Access(None).base_url, name, tenant=tenant_id, purpose="embed")
                theirs = MeteredEmbeddings(made, account, self._budgets, self._used)
            self._theirs[mine] = MaskedEmbeddings(theirs, kinds) if kinds else theirs
        return self._theirs[mine]

    async def close(self) -> None:
        for one in self._made.values():
            if one is not None:
                await one.close()
