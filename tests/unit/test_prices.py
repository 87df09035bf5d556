"""What a call costs, as the endpoint or a list of prices tells."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from processors.llm import Usage
from processors.prices import LOOK_EVERY, Prices, read

USED = Usage(1_000_000, 1_000_000, 500_000)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    "model",
    ["openai/gpt-4o-mini", "gpt-4o-mini", "openai/gpt-4o-mini-2024-07-18", "openai/gpt-4o-mini:free", "GPT-4o-mini"],
)
def test_a_model_is_known_under_its_names(model: str) -> None:
    assert Prices().cost(model, USED) == pytest.approx(0.5 * 0.15 + 0.5 * 0.075 + 0.60)


def test_what_the_endpoint_tells_goes_before_the_list_and_an_unknown_model_has_no_price() -> None:
    assert Prices().cost("openai/gpt-4o-mini", Usage(10, 10, cost=0.5)) == 0.5
    assert Prices().cost("nobody/knows-it", USED) is None


def test_a_file_adds_to_the_list_and_is_followed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    clock, file = Clock(), tmp_path / "prices.yaml"
    prices = Prices(file, clock)
    assert prices.of("own/model") is None
    file.write_text("own/model: {input: 1, output: 2}\nopenai/gpt-4o-mini: {input: 9, output: 9}\n", encoding="utf-8")
    assert prices.of("own/model") is None  # not looked at yet
    clock.now += LOOK_EVERY
    assert prices.cost("model", USED) == pytest.approx(3.0)
    assert prices.cost("openai/gpt-4o-mini", USED) == pytest.approx(18.0)
    file.write_text("own/model: cheap\n", encoding="utf-8")
    clock.now += LOOK_EVERY
    with caplog.at_level(logging.ERROR):
        assert prices.cost("own/model", USED) == pytest.approx(3.0)  # the last good one stays
    assert "own/model: write {input" in caplog.text
    file.unlink()
    clock.now += LOOK_EVERY
    assert prices.of("own/model") is None


@pytest.mark.parametrize(
    "text",
    ["- a", "a: {input: 1}", "a: {input: -1, output: 1}", "a: {input: x, output: 1}", "a: {in: 1, out: 2}", "a: ["],
)
def test_a_wrong_list_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"write|YAML"):
        read(text)
