"""How large models are, how much of their window each part gets, and that no prompt is ever larger."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gateway import prompt
from gateway.fitting import MARK, Room
from memory.budget import LARGE, MEDIUM, SMALL, TINY, budget, tier_of
from processors.model_sizes import ModelSize, model_size, size_in
from processors.tokens import counter, estimate

COUNTS = Path(__file__).parent / "token_counts.tsv"  # as the tokenizers o200k_base and cl100k_base count them
NOW = datetime(2026, 3, 6, 10, 28, tzinfo=UTC)


def counted() -> list[tuple[str, int, int]]:
    rows = [line.split("\t") for line in COUNTS.read_text(encoding="utf-8").splitlines()]
    return [(text.replace("\\n", "\n").replace("\\t", "\t"), int(new), int(old)) for text, new, old in rows]


@pytest.mark.parametrize(("text", "new", "old"), counted())
def test_an_estimate_is_never_below_the_truth(text: str, new: int, old: int) -> None:
    assert new <= estimate(text, "o200k") <= 4 * new + 6
    assert old <= estimate(text, "cl100k") <= 4 * old + 6
    assert estimate(text, "") >= max(new, old)


def test_where_the_tokenizer_is_installed_it_counts() -> None:
    pytest.importorskip("bpe_openai")
    assert [counter("o200k")(text) for text, _, _ in counted()] == [new for _, new, _ in counted()]


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("mistral-7b-instruct", 7),
        ("mixtral-8x7b", 56),
        ("llama3:70b", 70),
        ("qwen2.5-0.5b", 0.5),
        ("SmolLM2-135M", 0.135),
        ("qwen3-235b-a22b", 235),
        ("gemma-3n-e4b", 4),
        ("gpt-4o-mini", None),
        ("8bit-model", None),
        ("yi_34B_chat", 34),
    ],
)
def test_a_models_name_tells_its_size(name: str, size: float | None) -> None:
    assert size_in(name) == size


@pytest.mark.parametrize(
    ("size", "tier"), [(0.1, TINY), (3, TINY), (3.8, SMALL), (9, SMALL), (13, MEDIUM), (34, MEDIUM), (35, LARGE)]
)
def test_a_size_has_a_tier(size: float, tier: object) -> None:
    assert tier_of(size) == tier


def test_the_table_knows_what_names_do_not_tell_and_the_shop_knows_better() -> None:
    assert model_size("openai/gpt-4o-mini") == ModelSize(100, 128_000, "o200k")
    assert model_size("my-own-model") == ModelSize(14, 8192, "")
    assert model_size("my-own-model", 3, 4096) == ModelSize(3, 4096, "")
    assert model_size("meta-llama/llama-3.1-8b-instruct:free").window == 131_072


def test_the_shares_of_a_window_are_those_of_its_tier_and_a_prompt_has_the_fewer_turns() -> None:
    small = budget(ModelSize(7, 8000))
    assert (small.answer, small.memory, small.history, small.prompt) == (1600, 1200, 4400, 6400)
    assert [budget(ModelSize(size, 8000)).turns(10) for size in (3, 7, 14, 70)] == [3, 6, 10, 10]
    assert budget(ModelSize(70, 8000)).turns(100) == 15
    assert [sum((t.system, t.memory, t.history, t.answer)) for t in (TINY, SMALL, MEDIUM, LARGE)] == [1, 1, 1, 1]


def _words(rng: random.Random, most: int) -> str:
    pieces = ["กาแฟเย็น", "ขอบคุณค่ะ", "hello", "delivery", "081-555-0147", "😀", "<tag>", "\n"]
    return " ".join(rng.choices(pieces, k=rng.randint(0, most)))


@pytest.mark.parametrize("seed", range(40))
def test_no_prompt_is_larger_than_the_model_reads_and_the_message_is_whole(seed: int) -> None:
    rng = random.Random(seed)
    room = Room(budget(ModelSize(rng.choice([1, 7, 14, 70]), rng.choice([1024, 2048, 4096, 8192]))), estimate)
    text = room.own(_words(rng, 400))
    context: dict[str, Any] = {
        "recent_messages": [{"role": rng.choice(["user", "bot"]), "message": _words(rng, 200)} for _ in range(20)],
        "user_attributes": {f"key{n}": _words(rng, 30) for n in range(rng.randint(0, 40))},
        "history_summary": _words(rng, 300),
        "important_events": [
            {"event_type": "REQUEST", "timestamp": "2026-03-01", "payload": {"original_message": _words(rng, 40)}}
            for _ in range(5)
        ],
        "shop_facts": [_words(rng, 20) for _ in range(10)],
        "procedures": [_words(rng, 60) for _ in range(3)],
        "memories": [_words(rng, 40) for _ in range(5)],
    }  # fmt: skip
    messages = prompt.build(
        shop="Shop", instructions=_words(rng, 500), system_role="system", language="th", now=NOW, context=context,
        knowledge=[(_words(rng, 10), _words(rng, 80)) for _ in range(3)], text=text, room=room,
    )  # fmt: skip
    assert room.of([str(message["content"]) for message in messages]) <= room.budget.prompt
    assert messages[-1]["content"] == text
    assert str(messages[0]["content"]).startswith(prompt.RULES)


def small_prompt(window: int, **context: Any) -> list[str]:
    room = Room(budget(ModelSize(7, window)), lambda text: len(text) // 2)
    messages = prompt.build(
        shop="Shop", instructions="Be kind.", system_role="system", language="en", now=NOW, context=context,
        knowledge=[], text="hello", room=room,
    )  # fmt: skip
    return [str(message["content"]) for message in messages]


def test_of_earlier_messages_the_oldest_go_first() -> None:
    history = [{"role": "user", "message": f"{number} " + "ก" * 600} for number in range(12)]
    said = small_prompt(2048, recent_messages=history)[1:-2]
    assert 0 < len(said) < 12
    assert [one.split()[0] for one in said] == [str(number) for number in range(12 - len(said), 12)]


def test_of_what_is_known_what_fits_the_message_least_goes_first() -> None:
    known = {f"key{number}": "ก" * 200 for number in range(40)}
    moment = small_prompt(2048, user_attributes=known, relevant_attributes=["key39", "key38"])[-2]
    assert "key39" in moment
    assert "key38" in moment
    assert "key37" not in moment


def test_a_message_longer_than_the_model_reads_is_cut_with_a_mark() -> None:
    room = Room(budget(ModelSize(1, 1024)), estimate)
    assert room.own("short") == "short"
    cut = room.own("ก" * 5000)
    assert cut.endswith(MARK)
    assert 100 < len(cut) < 5000
