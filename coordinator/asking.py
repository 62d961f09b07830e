"""Putting something before the engine and waiting for what comes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol
from uuid import UUID

from headway.coordinator.errors import Refusal
from headway.coordinator.intake import Answer, Item
from headway.coordinator.records import Loaded, NewTask
from headway.sagas import inputs as i
from headway.sagas.definition import Definition


class Ask(Protocol):
    """Puts something before the engine; the future has what came of it, once it is committed."""

    def __call__(
        self,
        task: UUID,
        happened: i.Input,
        *,
        new: NewTask | None = None,
        agent: str = "",
        target: Definition | None = None,
    ) -> asyncio.Future[Answer]: ...


def asking(put: Callable[[Item], None]) -> Ask:
    """An `Ask` that hands items to `put`, which may raise."""

    def ask(
        task: UUID,
        happened: i.Input,
        *,
        new: NewTask | None = None,
        agent: str = "",
        target: Definition | None = None,
    ) -> asyncio.Future[Answer]:
        answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

        def settle(answer: Answer) -> None:
            if not answered.done():
                answered.set_result(answer)

        put(Item(task, happened, settle, new=new, agent=agent, target=target, at_commit=True))
        return answered

    return ask


def accepted(answer: Answer) -> Loaded:
    """The task as it stands after what was asked; Refusal if that was refused."""
    if answer.refusal is not None:
        raise answer.refusal
    if answer.task is None:
        raise Refusal("there is no such task", 404)
    return answer.task
