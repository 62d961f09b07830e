"""Looking after a whole system: acts on many tasks, dead letters, webhooks."""

from __future__ import annotations

from typing import Any

from headway.agents.api import Api, made
from headway.agents.batch_views import BatchAction, BatchReply, BatchRequest
from headway.agents.deadletter_views import (
    LetterAct,
    LetterKind,
    LetterPage,
    LetterReceipt,
    LetterRef,
    LettersRequest,
    LetterView,
)
from headway.agents.webhook_views import (
    OVERLAP_S,
    WebhookList,
    WebhookMade,
    WebhookRef,
    WebhookRequest,
    WebhookRotation,
)


class Operating(Api):
    """What operators do beside stepping in at single tasks. `by` and `reason` are in the audit
    log."""

    async def batch(
        self,
        action: BatchAction,
        *,
        dry_run: bool = False,
        reason: str = "",
        by: str = "",
        limit: int = 100,
        cursor: str | None = None,
        **filters: Any,
    ) -> BatchReply:
        """Do the same to the tasks that the filters mean (the fields of `views.TaskFilter`), at
        most `limit` of them; go on with the cursor. See `BatchRequest`."""
        request = made(
            BatchRequest,
            action=action,
            filter=filters,
            dry_run=dry_run,
            reason=reason,
            by=by,
            limit=limit,
            cursor=cursor,
        )
        return await self.ask("batch", request, BatchReply, repeatable=dry_run)

    async def create_webhook(
        self,
        name: str,
        *,
        task: str = "query:task",
        signal: str = "query:signal",
        payload: str = "",
        saga: str | None = None,
        by: str = "",
    ) -> WebhookMade:
        """An address where another system sends signals, and its secret, which is not shown again;
        see `WebhookRequest` for where things stand in a delivery. Conflict if it exists."""
        request = made(
            WebhookRequest,
            name=name,
            task=task,
            signal=signal,
            payload=payload,
            saga=saga,
            by=by,
        )
        return await self.ask("webhook.create", request, WebhookMade, repeatable=False)

    async def webhooks(self) -> WebhookList:
        """All webhooks, without their secrets."""
        return await self.ask("webhook.list", b"{}", WebhookList)

    async def rotate_webhook(
        self, name: str, reason: str = "", *, overlap_s: int = OVERLAP_S, by: str = ""
    ) -> WebhookMade:
        """Give a webhook another secret, which is not shown again; the one before is good for
        `overlap_s` seconds more. NotFound if there is none."""
        request = made(WebhookRotation, name=name, reason=reason, overlap_s=overlap_s, by=by)
        return await self.ask("webhook.rotate", request, WebhookMade, repeatable=False)

    async def remove_webhook(self, name: str, reason: str = "", *, by: str = "") -> WebhookRef:
        """Take nothing there any more; its secret is of no use from then on."""
        request = made(WebhookRef, name=name, reason=reason, by=by)
        return await self.ask("webhook.remove", request, WebhookRef, repeatable=False)

    async def dead_letters(
        self,
        *,
        kind: LetterKind | None = None,
        dealt_with: bool = False,
        limit: int = 50,
        cursor: str | None = None,
    ) -> LetterPage:
        """A page of what was refused, newest first; see `LettersRequest`."""
        request = made(LettersRequest, kind=kind, dealt_with=dealt_with, limit=limit, cursor=cursor)
        return await self.ask("dead.list", request, LetterPage)

    async def dead_letter(self, sequence: int) -> LetterView:
        """One letter with the message that was refused; NotFound if it is gone."""
        return await self.ask("dead.get", made(LetterRef, sequence=sequence), LetterView)

    async def replay_letter(
        self, sequence: int, reason: str = "", *, by: str = ""
    ) -> LetterReceipt:
        """Publish a submission or an event again that was refused. Asked again it publishes nothing
        more; Conflict says why a letter cannot be replayed."""
        request = made(LetterAct, sequence=sequence, reason=reason, by=by)
        return await self.ask("dead.replay", request, LetterReceipt)

    async def drop_letter(self, sequence: int, reason: str = "", *, by: str = "") -> LetterReceipt:
        """Say that a letter is of no interest any more: lists leave it out."""
        request = made(LetterAct, sequence=sequence, reason=reason, by=by)
        return await self.ask("dead.drop", request, LetterReceipt)
