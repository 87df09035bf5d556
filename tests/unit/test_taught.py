"""Answers that staff teach beside the shop's file."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.settings import Settings
from config.tenants import Tenants
from gateway.ratings import Ratings
from gateway.taught import Taught
from tests.house import shop

NOW = datetime(2026, 11, 28, tzinfo=UTC)


@pytest.fixture
def tenants(tmp_path: Path) -> Tenants:
    folder = tmp_path / "config" / "tenants"
    folder.mkdir(parents=True)
    own: Any = shop(faq=[{"questions": ["hours"], "answer": "At nine."}])
    (folder / "shop.yaml").write_text(yaml.safe_dump(own), encoding="utf-8")
    return Tenants(Settings(data_dir=tmp_path / "data", config_dir=tmp_path / "config"))


def answers(tenants: Tenants) -> dict[str, str | None]:
    tenants.load()
    tenant = tenants.get("shop")
    assert tenant is not None
    return {entry.questions[0]: entry.answer.en for entry in tenant.faq}


def test_a_taught_answer_is_served_beside_the_files_own_until_it_is_removed(tmp_path: Path, tenants: Tenants) -> None:
    taught = Taught(tmp_path / "data")
    assert answers(tenants) == {"hours": "At nine."}
    before = (tmp_path / "config" / "tenants" / "shop.yaml").read_bytes()
    taught.add("shop", ["where can I  park?", "", "parking"], " Behind the shop. ", NOW)
    assert answers(tenants) == {"hours": "At nine.", "where can I park?": "Behind the shop."}
    # The same questions again: the later answer stands in place of the earlier one.
    entry = taught.add("shop", ["where can I park?", "parking"], "In the street.", NOW)
    assert answers(tenants) == {"hours": "At nine.", "where can I park?": "In the street."}
    assert (taught.remove("shop", entry), taught.remove("shop", entry)) == (True, False)
    assert answers(tenants) == {"hours": "At nine."}
    assert (tmp_path / "config" / "tenants" / "shop.yaml").read_bytes() == before


@pytest.mark.parametrize(("questions", "answer"), [([], "yes"), (["  "], "yes"), (["parking"], "  ")])
def test_it_takes_a_question_and_an_answer(tmp_path: Path, questions: list[str], answer: str) -> None:
    with pytest.raises(ValueError, match="question"):
        Taught(tmp_path).add("shop", questions, answer, NOW)


@pytest.mark.parametrize("content", ["{", "{}", '[{"id": "a"}, 7, {"id": "b", "questions": ["q"], "answer": ""}]'])
def test_a_file_that_is_none_keeps_no_shop_from_serving(tmp_path: Path, tenants: Tenants, content: str) -> None:
    (tmp_path / "data" / "taught").mkdir(parents=True)
    (tmp_path / "data" / "taught" / "shop.json").write_text(content, encoding="utf-8")
    assert answers(tenants) == {"hours": "At nine."}


def test_a_rating_can_be_taken_back_and_goes_with_its_person(tmp_path: Path) -> None:
    ratings = Ratings(tmp_path)
    ratings.rate("shop", "line:U1", "re:1", "good", NOW)
    ratings.rate("shop", "line:U1", "re:1", "bad", NOW)
    ratings.rate("shop", "line:U2", "re:2", "good", NOW)
    assert (ratings.of("shop"), ratings.of("shop", "line:U1")) == ({"re:1": "bad", "re:2": "good"}, {"re:1": "bad"})
    ratings.rate("shop", "line:U1", "re:1", None, NOW)
    assert ratings.of("shop") == {"re:2": "good"}
    assert (ratings.forget("shop", ["line:U2"]), ratings.of("shop")) == (1, {})
