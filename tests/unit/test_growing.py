"""Markdown that is still being written."""

from __future__ import annotations

import pytest

from gateway.rendering import render_telegram
from gateway.rendering.growing import so_far

ANSWER = """## Today

We have **fresh latte** and ~~tea~~, `cold brew` too: **`x` and *y***.

- one cup is [on the menu](https://x.io/menu?a=1)
- ลาเต้ **สองแก้ว** ค่ะ 👕

```python
print("**no mark**")
```

Any **time**."""


@pytest.mark.parametrize(
    ("begun", "shown"),
    [
        ("Fresh **lat", "Fresh **lat**"),
        ("Fresh **latte ", "Fresh **latte**"),
        ("Fresh **", "Fresh "),
        ("Fresh *", "Fresh "),
        ("Fresh **latte*", "Fresh **latte**"),
        ("Fresh **latte**", "Fresh **latte**"),
        ("**a** and **b", "**a** and **b**"),
        ("an *old", "an *old*"),
        ("an *old* and 2 * 3 = 6", "an *old* and 2 * 3 = 6"),
        ("* one\n* two", "* one\n* two"),
        ("*old **and new", "*old **and new***"),
        ("not ~~so", "not ~~so~~"),
        ("**not ~~so", "**not ~~so~~**"),
        ("run `ls", "run `ls`"),
        ("run `", "run "),
        ("**run `ls", "**run `ls`**"),
        ("run `2**3` **now", "run `2**3` **now**"),
        ("see [the me", "see "),
        ("see [the menu]", "see "),
        ("see [the menu](https://x.io/m", "see "),
        ("see [the menu](https://x.io/m)", "see [the menu](https://x.io/m)"),
        ("see ![a cup](https://x.io/c", "see "),
        ("```\na ** b", "```\na ** b"),
        ("so:\n```py", "so:"),
        ("```\na\n``", "```\na"),
        ("done **well**\n\nand [x](", "done **well**\n\nand "),
        ("", ""),
    ],
)
def test_what_is_begun_is_ended(begun: str, shown: str) -> None:
    assert so_far(begun) == shown


def test_nothing_that_was_shown_goes_away_while_an_answer_grows() -> None:
    shown = ""
    for end in range(len(ANSWER) + 1):
        text = "".join(piece.text for piece in render_telegram(so_far(ANSWER[:end])))
        assert text.startswith(shown.rstrip(" -*_#`|1.\n•")), (shown, text)
        shown = text
    assert shown == "".join(piece.text for piece in render_telegram(ANSWER))
