"""What slow answers cost a shop on LINE: free replies against paid pushes.

    python -m benchmarks.line_quota --customers 100 --press 0.9

Every customer writes a few messages, waits for each answer, and presses the button of a "still thinking" bubble with
the given probability. One table row for each kind of model. Times are real: 20 seconds are 20 seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import random
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.patience import Times
from gateway.redis_server import EmbeddedRedis
from tests.house import LLM_KEY, House, house, shop

Delay = Callable[[random.Random], float]
MODELS: dict[str, Delay] = {
    "20 s": lambda dice: 20.0,
    "mix, 1 to 45 s": lambda dice: dice.choice((1.0, 3.0, 8.0, 20.0, 30.0, 45.0)),
    "50 s": lambda dice: 50.0,
}
MESSAGES = 2  # of each customer
PRESSES_AFTER = (2.0, 20.0)  # seconds until a customer sees the button
GIVES_UP = 150.0  # seconds a customer waits for one answer


@dataclass(slots=True)
class Result:
    asked: int = 0
    answered: int = 0
    held: int = 0  # words that it takes longer
    replies: int = 0
    pushes: int = 0
    seconds: float = 0.0

    @property
    def free(self) -> float:
        return self.replies / max(1, self.replies + self.pushes)


async def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--customers", type=int, default=100)
    arguments.add_argument("--press", type=float, default=0.9, help="how likely a customer presses the button")
    arguments.add_argument("--model", choices=[*MODELS, "all"], default="all")
    given = arguments.parse_args()
    logging.disable(logging.ERROR)
    print(f"{given.customers} customers, {MESSAGES} messages each; the button is pressed with p = {given.press}")
    print(f"{'model':<16}{'asked':>7}{'answered':>10}{'held':>6}{'free':>7}{'paid':>6}{'free %':>8}{'seconds':>9}")
    for name in MODELS if given.model == "all" else [given.model]:
        found = await run(MODELS[name], given.customers, given.press)
        print(
            f"{name:<16}{found.asked:>7}{found.answered:>10}{found.held:>6}{found.replies:>7}{found.pushes:>6}"
            f"{100 * found.free:>8.1f}{found.seconds:>9.0f}",
            flush=True,
        )


async def run(delay: Delay, customers: int, press: float) -> Result:
    """One house with a model that takes `delay` seconds for each answer."""
    dice = random.Random(7)
    result = Result()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="cc-") as folder:
        server = EmbeddedRedis(Path(folder) / "data")
        url = server.start()
        try:
            slow = shop(llm={"timeout": 120}, understanding={"policy": "never"})
            async with house(Path(folder), url, {"shop": slow}, llm_key=LLM_KEY, times=Times()) as home:

                async def say(request: dict[str, Any]) -> str:
                    await asyncio.sleep(delay(dice))
                    return f"answer to {request['messages'][-1]['content']}"

                await home.line_says(f"U{'f' * 32}", "hello")  # once, so that everything is loaded
                await home.line.until(lambda: bool(home.line.calls_to("/reply")), timeout=120)
                home.line.calls.clear()
                home.llm.answers(say)
                await asyncio.gather(*(_customer(home, number, press, result) for number in range(customers)))
                result.replies = len([one for one in home.line.calls_to("/reply") if one.answered_status == 200])
                result.pushes = len([one for one in home.line.calls_to("/push") if one.answered_status == 200])
        finally:
            server.stop()
    result.seconds = time.monotonic() - began
    return result


async def _customer(home: House, number: int, press: float, result: Result) -> None:
    dice = random.Random(number)
    user = f"U{number:032x}"
    await asyncio.sleep(dice.uniform(0, 5))
    for turn in range(MESSAGES):
        wanted = f"answer to question {turn} of {number}"
        result.asked += 1
        await home.line_says(user, f"question {turn} of {number}")
        deadline, pressed = time.monotonic() + GIVES_UP, _held(home, user)
        result.held -= pressed
        while wanted not in home.line_shows(user) and time.monotonic() < deadline:
            await asyncio.sleep(0.5)
            if _held(home, user) > pressed:
                pressed = _held(home, user)
                if dice.random() < press:
                    await asyncio.sleep(dice.uniform(*PRESSES_AFTER))
                    await _press(home, user)
        result.held += _held(home, user)
        result.answered += wanted in home.line_shows(user)
        await asyncio.sleep(dice.uniform(1, 3))


def _held(home: House, user: str) -> int:
    return sum(one.message["type"] == "template" for one in home.line.delivered.get(user, ()))


async def _press(home: House, user: str) -> None:
    button = next(one for one in reversed(home.line.delivered[user]) if one.message["type"] == "template")
    event = home.line.text_event(user, "")
    del event["message"]
    data = button.message["template"]["actions"][0]["data"]
    await home.line.deliver(home.line_hook(), {**event, "type": "postback", "postback": {"data": data}})


if __name__ == "__main__":
    asyncio.run(main())
