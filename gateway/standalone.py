"""What a customer's follow-up means, in words that can be looked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from config.tenants import Agent
from processors import rewrite
from processors.llm import Access, ChatModel
from processors.model_sizes import ModelSize, model_size


def size_of(agent: Agent) -> ModelSize:
    """Of the agent's model, as its name says or the shop."""
    return model_size(agent.model, agent.model_size, agent.context_window)


class Standalone:
    """Shared by all tenants. What the model is asked for here counts as the purpose `rewrite`."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model

    async def of(
        self, agent: Agent, access: Access, words: str, history: Sequence[Mapping[str, Any]], *, hurried: bool = False
    ) -> str:
        """The message itself where it says what it means, or where nobody can tell. The model is asked only for what
        rules leave open, and only one that is large enough, unless the agent's `rewrite` says otherwise."""
        if agent.rewrite == "off" or not rewrite.follows_up(words, history):
            return words
        found = rewrite.by_rules(words, history)
        large = agent.rewrite == "model" or (agent.rewrite == "auto" and size_of(agent).size >= rewrite.LARGE_ENOUGH)
        if found is None and large and access.api_key and not hurried:
            found = await rewrite.by_model(words, history, self._model, access)
        return found or words
