"""Looking after a whole system: dead letters."""

from __future__ import annotations

from headway.agents.api import Api, made
from headway.agents.deadletter_views import (
    LetterAct,
    LetterKind,
    LetterPage,
    LetterReceipt,
    LetterRef,
    LettersRequest,
    LetterView,
)


class Operating(Api):
    """What operators do beside stepping in at single tasks. `by` and `reason` are in the audit
    log."""

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
