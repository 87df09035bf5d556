"""Local servers that behave as LINE, Telegram and OpenRouter do, and record what they got."""

from tests.standins.line import LineChannel, LineContent, LineShown, LineStandIn
from tests.standins.model import Fault, Recorded
from tests.standins.openrouter import OpenRouterStandIn, Said
from tests.standins.server import StandIn
from tests.standins.telegram import TelegramShown, TelegramStandIn

__all__ = [
    "Fault",
    "LineChannel",
    "LineContent",
    "LineShown",
    "LineStandIn",
    "OpenRouterStandIn",
    "Recorded",
    "Said",
    "StandIn",
    "TelegramShown",
    "TelegramStandIn",
]
