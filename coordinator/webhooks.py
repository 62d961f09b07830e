"""Webhooks: made, rotated, listed and removed by operators; each delivery becomes a signal.

Always holds: no secret is stored, each is derived from the one that commands are signed with; what
a delivery asks for is done once, since its id is that of the signal, and is good for one task only.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from uuid import UUID

import asyncpg
from headway.agents.views import Nothing, SignalRequest
from headway.agents.webhook_views import (
    HookReceipt,
    WebhookList,
    WebhookMade,
    WebhookRef,
    WebhookRequest,
    WebhookRotation,
    WebhookView,
)
from headway.coordinator.errors import Refusal, StoreUnavailable
from headway.coordinator.interventions import check_words
from headway.coordinator.serving import Serve, typed
from headway.coordinator.store import Store
from headway.coordinator.submissions import read_json
from headway.coordinator.vouching import Key
from headway.coordinator.webhook_places import (
    Content,
    check_place,
    check_pointer,
    text_at,
    value_at,
)
from headway.coordinator.webhook_signing import WINDOW_S, checked_id, secret_text

PATH = "/hooks/"
SALT_BYTES = 16
REMEMBERED_S = 2 * WINDOW_S  # for which a delivery's id is known
LOOKS_MAX = 3  # for a delivery that a peer takes in this very moment

Signal = Callable[[SignalRequest], Awaitable[Any]]


class Webhooks:
    def __init__(self, store: Store, key: Key, clock: Callable[[], int]) -> None:
        """`clock` is in ms since 1970."""
        self._store = store
        self._key = key
        self._clock = clock

    def operations(self) -> dict[str, Serve]:
        return {
            "webhook.create": typed(WebhookRequest, WebhookMade, self.create),
            "webhook.list": typed(Nothing, WebhookList, self.list),
            "webhook.rotate": typed(WebhookRotation, WebhookMade, self.rotate),
            "webhook.remove": typed(WebhookRef, WebhookRef, self.remove),
        }

    async def create(self, request: WebhookRequest) -> WebhookMade:
        """With its secret. Refusal (409) if there is one of this name."""
        check_words(request.by, "")
        check_place(request.task, "task")
        check_place(request.signal, "signal", named=True)
        check_pointer(request.payload, "payload")
        if any("\0" in each for each in (request.saga or "", request.task, request.payload)):
            raise Refusal("saga, task, payload: a NUL character cannot be stored", 422)
        salt = secrets.token_bytes(SALT_BYTES)
        rows = await self._store.fetch(
            "make_webhook",
            request.name,
            salt,
            request.saga or "",
            request.task,
            request.signal,
            request.payload,
            request.by,
        )
        if not rows:
            raise Refusal(
                f"webhook {request.name!r} exists; remove it first, or take another name", 409
            )
        return self._made(rows[0], salt)

    async def rotate(self, request: WebhookRotation) -> WebhookMade:
        """With its new secret. Refusal (404) if there is none of this name."""
        check_words(request.by, request.reason)
        salt = secrets.token_bytes(SALT_BYTES)
        name, by, reason = request.name, request.by, request.reason
        asked = (name, salt, request.overlap_s, by, reason)
        rows = await self._store.fetch("rotate_webhook", *asked)
        if not rows:
            raise Refusal(f"there is no webhook {name!r}", 404)
        return self._made(rows[0], salt)

    async def list(self, _request: Nothing) -> WebhookList:
        rows = await self._store.fetch("webhooks", None)
        return WebhookList(webhooks=[_view(row) for row in rows])

    async def remove(self, request: WebhookRef) -> WebhookRef:
        check_words(request.by, request.reason)
        name, by, reason = request.name, request.by, request.reason
        if not await self._store.fetch("remove_webhook", name, by, reason):
            raise Refusal(f"there is no webhook {name!r}", 404)
        return request

    async def take(
        self,
        name: str,
        headers: Mapping[str, str],
        query: Mapping[str, str],
        body: bytes,
        signal: Signal,
    ) -> HookReceipt:
        """Send the signal that a delivery asks for. Refusal (401) if it is not signed or too old,
        (422) if something is not found in it, or what `signal` refuses."""
        hook, now = await self._hook(name), self._clock()
        salts = [hook[salt] for salt in ("salt", "old_salt") if hook[salt] is not None]
        keys = [self._secret(name, salt) for salt in salts]
        delivery = checked_id(keys, headers, body, now / 1000)
        content = Content(read_json(body), query, headers)
        task = _task(text_at(hook["task"], "task", content))
        named = text_at(hook["signal"], "signal", content)
        payload = value_at(hook["payload"], "payload", content.body)
        await self._check_saga(task, hook["saga"])
        repeated = await self._note(name, delivery, task, named, now)
        request = SignalRequest(
            task=task,
            name=named,
            id=f"webhook/{name}/{delivery}",
            payload=payload,
            by=f"webhook {name}",
        )
        await signal(request)
        return HookReceipt(id=delivery, task=task, signal=named, repeated=repeated)

    async def check(self, name: str) -> None:
        """Refusal (404) if there is none of this name."""
        await self._hook(name)

    async def _hook(self, name: str) -> asyncpg.Record:
        rows = await self._store.fetch("webhooks", name) if "\0" not in name else []
        if not rows:
            raise Refusal(f"there is no webhook {name!r}", 404)
        return rows[0]

    async def _check_saga(self, task: UUID, saga: str) -> None:
        if not saga:
            return
        found = (await self._store.read([task])).get(task)
        if found is None or found.definition.name != saga:
            raise Refusal(f"there is no task {task} of saga {saga!r}", 404)

    async def _note(self, name: str, delivery: str, task: UUID, signal: str, now: int) -> bool:
        """Remember a delivery; whether it came before. Refusal (409) if it was for something
        else then."""
        if "\0" in signal:
            raise Refusal("signal: a NUL character cannot be stored", 422)
        for _ in range(LOOKS_MAX):
            asked = (name, delivery, task, signal, now, REMEMBERED_S * 1000)
            rows = await self._store.fetch("take_delivery", *asked)
            if rows:
                break
        else:
            raise StoreUnavailable("this delivery is being taken; send it again")
        before = rows[0]
        if (before["task_id"], before["signal"]) != (task, signal):
            raise Refusal(
                f"delivery {delivery!r} was signal {before['signal']!r} for task "
                f"{before['task_id']}; an id is for one delivery",
                409,
            )
        return not before["fresh"]

    def _made(self, row: asyncpg.Record, salt: bytes) -> WebhookMade:
        """A webhook with its secret."""
        secret = secret_text(self._secret(row["name"], salt))
        return WebhookMade(**_view(row).model_dump(), secret=secret)

    def _secret(self, name: str, salt: bytes) -> bytes:
        return self._key(b"headway webhook key\0" + name.encode() + b"\0" + salt)


def _task(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError as error:
        raise Refusal(f"task: {text[:64]!r} is no task's id", 422) from error


def _view(row: asyncpg.Record) -> WebhookView:
    return WebhookView(
        name=row["name"],
        path=f"{PATH}{row['name']}",
        saga=row["saga"] or None,
        task=row["task"],
        signal=row["signal"],
        payload=row["payload"],
        created_at=row["created_at"],
        created_by=row["created_by"],
        old_until=row["old_until"],
    )
