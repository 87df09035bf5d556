"""Scripts of conversations, played against tenants' files: those that come with the examples, and what fails."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from config.mistakes import TenantError
from config.settings import Settings
from gateway.cli import cli
from gateway.simulation.play import play

REPO = Path(__file__).parents[2]
SCRIPTS = sorted((REPO / "config" / "examples" / "simulations").glob("*.yaml"))
SHOP = """\
name: Shop
channels: {line: {platform: line, channel_secret: "${*_SECRET}", channel_access_token: "${*_TOKEN}"}}
faq: [{questions: [What time do you open?], answer: At **nine**., buttons: [Where are you?]}]
"""


def given(folder: Path) -> Settings:
    return Settings(data_dir=folder / "data", embeddings="none")


def write(folder: Path, script: str, shop: str = SHOP) -> Path:
    (folder / "shop.yaml").write_text(shop, encoding="utf-8")
    file = folder / "script.yaml"
    file.write_text(script, encoding="utf-8")
    return file


def test_each_example_has_a_script() -> None:
    assert [script.stem for script in SCRIPTS] == ["agency", "cafe", "clinic", "hotel", "live-shop"]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
async def test_an_example_comes_out_as_its_script_says(script: Path, tmp_path: Path, redis_url: str) -> None:
    said: list[str] = []
    assert await play(script, given(tmp_path), redis_url, said.append) == 0, "\n".join(said)


async def test_what_is_not_as_expected_is_shown_beside_what_it_is(tmp_path: Path, redis_url: str) -> None:
    file = write(
        tmp_path,
        """\
tenant: shop.yaml
at: 2026-11-30 10:00
model: Hello from the model.
turns:
  - say: What time do you open?
    expect: {answer: [at nine, at ten], never: nine, type: [COMPLAINT, REQUEST], importance: ">0.9", buttons: Menu}
  - say: I am allergic to nuts
    wait: 2h
    expect: {remembers: [nuts, milk], asks_model: false, silent: true}
  - say: /mydata
    expect: {type: INQUIRY}
""",
    )
    said: list[str] = []
    unmet = await play(file, given(tmp_path), redis_url, said.append)
    lines = "\n".join(said).splitlines()
    assert unmet == 9
    assert lines[1:6] == [
        " 1  Mon 10:01  customer: What time do you open?",
        "      understood   INQUIRY 0.55",
        "      answer       At nine.",
        "      buttons      [Where are you?]",
        "      remembered   preferred_language = en",
    ]
    told = [line for line in lines if line.lstrip().startswith(("✗", "expected", "but it is"))]
    assert told == [
        "    ✗ answer",
        "      expected     - at ten",
        "      but it is    + At nine.",
        "    ✗ answer",
        "      expected     - nothing of 'nine'",
        "      but it is    + At nine.",
        "    ✗ type",
        "      expected     - COMPLAINT or REQUEST",
        "      but it is    + INQUIRY",
        "    ✗ importance",
        "      expected     - >0.9",
        "      but it is    + 0.55",
        "    ✗ buttons",
        "      expected     - Menu",
        "      but it is    + Where are you?",
        "    ✗ answer",
        "      expected     - none",
        "      but it is    + Hello from the model.",
        "    ✗ memory",
        "      expected     - milk",
        *[line for line in told if "allergies = nuts" in line],
        "    ✗ model",
        "      expected     - the language model is not asked",
        "      but it is    + it was asked",
        "    ✗ type",
        "      expected     - INQUIRY",
        "      but it is    + (not understood as a message)",
    ]
    assert "3 turns, 2 of 11 expectations met" in lines


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("tenant: shop.yaml\nturns: [{sey: hello}]\n", "2:10: turns[0].sey: is not a known field — did you mean say?"),
        (
            "tenant: shop.yaml\nturns: [{say: a, expect: {anser: b}}]\n",
            "2:27: turns[0].expect.anser: is not a known field — did you mean answer?",
        ),
        (
            "tenant: shop.yaml\nturns: [{say: a, wait: soon}]\n",
            "2:24: turns[0].wait: is not a time span — write a number and s, m, h or d, such as 30m or 2d",
        ),
        (
            "tenant: shop.yaml\nturns: [{say: a, expect: {type: COMPLAIN}}]\n",
            "2:27: turns[0].expect.type[0]: is none of INQUIRY, FEEDBACK, REQUEST, COMPLAINT, TRANSACTION, SUPPORT, "
            "INFORMATION, GENERIC_EVENT — did you mean COMPLAINT?",
        ),
        ("tenant: shop.yaml\nturns: []\n", "2:8: turns: is empty — write at least one turn: `- say: …`"),
        ("turns: [{say: a}]\n", "1:1: tenant: is missing — add tenant: …"),
    ],
)
async def test_a_script_that_is_wrong_is_told_with_its_place(script: str, told: str, tmp_path: Path) -> None:
    file = write(tmp_path, script)
    with pytest.raises(TenantError) as caught:
        await play(file, given(tmp_path), "redis://127.0.0.1:1", print)
    assert [str(one).removeprefix(f"{file}:") for one in caught.value.mistakes] == [told]


def test_a_tenants_file_that_is_wrong_is_one_mistake_and_exit_status_1(tmp_path: Path) -> None:
    file = write(tmp_path, "tenant: shop.yaml\nturns: [{say: a}]\n", SHOP + "languag: th\n")
    made = CliRunner().invoke(cli, ["simulate", str(file), "--lang", "en"], prog_name="chat-chat")
    assert (made.exit_code, made.stdout) == (1, "")
    assert "shop.yaml:4:1: languag: is not a known field — did you mean language?" in made.stderr
