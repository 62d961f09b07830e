"""What the API takes and answers about webhooks (`webhook.*`), as pydantic models.

A webhook is an address, `POST /hooks/<name>`, where another system sends what becomes a signal for
a task. Deliveries are signed as Standard Webhooks has it: the headers `webhook-id`,
`webhook-timestamp` (seconds since 1970) and `webhook-signature`, which is `v1,` and the HMAC-SHA256
over `<id>.<timestamp>.<body>` in base64, with the secret after `whsec_` as key. Several signatures,
separated by spaces, may stand there: one that fits is enough.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

from headway.agents.subjects import TOKEN
from pydantic import BaseModel, ConfigDict, Field

PLACE_MAX_CHARS = 512
DELIVERY_ID_MAX_CHARS = 120
OVERLAP_S = 86_400  # in which two secrets of a webhook are good, unless it is said otherwise
OVERLAP_MAX_S = 30 * 86_400

Name = Annotated[str, Field(pattern=f"^{TOKEN.pattern}$")]
Place = Annotated[str, Field(max_length=PLACE_MAX_CHARS)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class WebhookRef(_Model):
    """webhook.remove: nothing is taken there any more."""

    name: Name
    by: str = ""
    reason: str = ""


class WebhookRequest(_Model):
    """webhook.create: where things stand in a delivery.

    Attributes:
        saga: whose tasks may be signalled; None for any.
        task: the task's id: `pointer:/data/task` (a JSON pointer into the body, RFC 6901),
            `query:task` or `header:X-Task`. Only the body is signed.
        signal: the signal's name, likewise; or `name:paid` for always the same one.
        payload: a JSON pointer to what the signal brings; "" for the whole body.
    """

    name: Name
    saga: str | None = None
    task: Place = "query:task"
    signal: Place = "query:signal"
    payload: Place = ""
    by: str = ""


class WebhookRotation(WebhookRef):
    """webhook.rotate: another secret, which is good at once. The one before stays good for
    `overlap_s` seconds, in which its sender changes over; 0: it leaked, and ends now. One that is
    older still ends in any case."""

    overlap_s: int = Field(default=OVERLAP_S, ge=0, le=OVERLAP_MAX_S)


class WebhookView(_Model):
    """A webhook; `path` is its address below that of any coordinator's HTTP. `old_until`: when the
    secret before ends, as long as it is good as well."""

    name: str
    path: str
    saga: str | None = None
    task: str
    signal: str
    payload: str
    created_at: datetime
    created_by: str = ""
    old_until: datetime | None = None


class WebhookMade(WebhookView):
    """With its secret, which is not shown again."""

    secret: str


class WebhookList(_Model):
    webhooks: list[WebhookView]


class HookReceipt(_Model):
    """What a delivery is answered with. `repeated`: it came before."""

    id: str
    task: UUID
    signal: str
    repeated: bool
