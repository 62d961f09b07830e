"""An engine over a real store, as in a coordinator's process of its own, with a bus that only
remembers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from headway.coordinator.commands import Outgoing, Sought
from headway.coordinator.decisions import Decision
from headway.coordinator.engine import Engine
from headway.coordinator.family import Family
from headway.coordinator.intake import Answer, Item
from headway.coordinator.records import NewTask
from headway.coordinator.schemas import InputCheck
from headway.coordinator.store import Store
from headway.sagas import Phase, Saga, Stop
from headway.sagas import inputs as i

SAGA = (
    Saga("pair")
    .step("a", "x.a", compensate="x.undo_a")
    .step("b", "x.b", compensate="x.undo_b", after="a")
    .step("c", "x.c", compensate="x.undo_c", after="b")
)


async def _tell_nobody(*_told: object) -> Answer:
    raise AssertionError("no step here is a child")


NO_CHILDREN = Family(_tell_nobody, lambda: 0)


@dataclass
class Remembering:
    """A bus that stores everything at once."""

    sent: list[Outgoing] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    async def dispatch(self, commands: Sequence[Outgoing]) -> list[bool]:
        self.sent += commands
        return [True] * len(commands)

    async def withdraw(self, commands: Sequence[Sought]) -> set[Sought]:
        return set(commands)

    def stop(self, agent: str, task: UUID, stop: Stop) -> None: ...

    def announce(self, decision: Decision, kind: str) -> None:
        self.told.append(kind)


@dataclass
class Desk:
    """An engine with a store of its own, as in a process of its own."""

    store: Store
    bus: Remembering = field(default_factory=Remembering)
    suspects: list[UUID] = field(default_factory=list)
    committed: list[Decision] = field(default_factory=list)

    def __post_init__(self) -> None:
        check = InputCheck().check
        self.found: list[Item] = []
        self.engine = Engine(
            self.store,
            self.store.sagas,
            self.bus,
            self.committed.extend,
            NO_CHILDREN,
            check,
            self.suspects.append,
            self.found.append,
        )

    async def handle(self, *items: Item) -> None:
        await self.engine.perform(await self.engine.commit(items))

    async def submit(self, task: UUID, body: bytes = b"1", **changes: object) -> Answer:
        new = NewTask(task, "pair", body, body, **changes)  # type: ignore[arg-type]
        return await self.tell(task, i.Submit(1_000), new=new)

    async def success(self, task: UUID, step: str, *, repeated: bool = False) -> Answer:
        happened = i.Succeeded(2_000, step, Phase.ACTION, 1, step)
        return await self.tell(task, happened, agent="x", repeated=repeated)

    async def tell(self, task: UUID, happened: i.Input, **fields: object) -> Answer:
        answers: list[Answer] = []
        await self.handle(Item(task, happened, answers.append, **fields))  # type: ignore[arg-type]
        [answer] = answers
        return answer
