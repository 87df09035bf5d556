"""What can go wrong in the gateway.

GatewayFault
├── ReceiveFault           a webhook that is not taken; `status` is the HTTP answer
│   ├── BadSignature       401
│   └── NotJson            400
├── SendFault              a platform did not take a message; see each for what to do
│   ├── SendRetry          try again, not before `retry_after` seconds: rate limit, 5xx, connection refused
│   ├── SendAmbiguous      it may have been taken (timeout after the first byte): only a safe repeat is allowed
│   ├── SendRefused        this message will never be taken; drop it, keep the conversation going
│   ├── TokenSpent         LINE's reply token is used or too old: it was sent before, or must go by push
│   ├── QuotaSpent         LINE's monthly quota is used up: no more pushes this month
│   ├── Unreachable        the user blocked the bot, or the bot was thrown out: stop sending there
│   ├── ChatMoved          the chat has a new id: `chat_id`
│   └── ChannelBroken      the channel's token is refused: nothing goes out until an operator mends it
├── InboxUnavailable       the queue can't be reached
│   └── SpoolFull          nor does the disk take any more (gateway.inbox.spool)
├── UnknownTenant          a message's tenant, channel or agent is not configured (any more)
└── EmbeddedRedisFault     the embedded server can't be started (gateway.redis_server)
"""

from __future__ import annotations


class GatewayFault(Exception):
    """The gateway could not do what was asked."""


class ReceiveFault(GatewayFault):
    """A webhook was not taken."""

    status = 400


class BadSignature(ReceiveFault):
    """The webhook's signature is missing or wrong."""

    status = 401


class NotJson(ReceiveFault):
    """The webhook's body is not JSON."""

    status = 400


class UnknownTenant(GatewayFault):
    """The conversation's tenant, channel or agent is not configured (any more)."""


class SendFault(GatewayFault):
    """A platform did not take a message."""


class SendRetry(SendFault):
    """The platform asks to try again later."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class SendAmbiguous(SendFault):
    """The platform may or may not have taken the message."""


class SendRefused(SendFault):
    """The platform will not take this message."""


class TokenSpent(SendFault):
    """The reply token is used or too old."""


class QuotaSpent(SendFault):
    """The channel's monthly quota is used up."""


class Unreachable(SendFault):
    """The user can't be reached any more."""


class ChatMoved(SendFault):
    """The chat has moved to a new id."""

    def __init__(self, message: str, chat_id: str) -> None:
        super().__init__(message)
        self.chat_id = chat_id


class ChannelBroken(SendFault):
    """The channel's access token is refused."""


class InboxUnavailable(GatewayFault):
    """The queue can't be reached. `ambiguous`: what was asked of it may have been done all the same."""

    def __init__(self, message: str, *, ambiguous: bool = False) -> None:
        super().__init__(message)
        self.ambiguous = ambiguous
