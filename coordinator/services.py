"""All that the API offers, wired by hand from what a coordinator has."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import UUID

from headway.agents.connection import Connection
from headway.coordinator import whoami
from headway.coordinator.admission import Admission
from headway.coordinator.asking import Ask
from headway.coordinator.audits import Audits
from headway.coordinator.batching import Batching
from headway.coordinator.bus import Bus
from headway.coordinator.catalogue import Catalogue
from headway.coordinator.command_keys import CommandKeys
from headway.coordinator.deadletters import DeadLetters
from headway.coordinator.documents import Documents
from headway.coordinator.errors import Refusal
from headway.coordinator.exports import Exports
from headway.coordinator.forks import Forks
from headway.coordinator.gates import Gates
from headway.coordinator.interventions import Interventions
from headway.coordinator.journal import Hold, Journal, Noted
from headway.coordinator.lookups import Lookups
from headway.coordinator.moves import Moves
from headway.coordinator.operations import Surroundings, TaskOperations
from headway.coordinator.overview import Overview
from headway.coordinator.presence import Roll
from headway.coordinator.records import Loaded
from headway.coordinator.running import Running
from headway.coordinator.serving import Offer
from headway.coordinator.settled import Settled
from headway.coordinator.signing import Signing
from headway.coordinator.store import Store
from headway.coordinator.timelines import Timelines
from headway.coordinator.topology import Topology
from headway.coordinator.vouching import Vouching
from headway.coordinator.waitinglist import WaitingList
from headway.coordinator.webhooks import Webhooks
from headway.coordinator.wellbeing import Wellbeing


@dataclass(frozen=True, slots=True)
class Parts:
    """What a coordinator has that its services need."""

    connection: Connection
    store: Store
    topology: Topology
    bus: Bus
    roll: Roll
    settled: Settled
    catalogue: Catalogue
    ask: Ask
    hold: Hold
    jitter: Callable[[], float]
    command_keys: CommandKeys
    admission: Admission
    wellbeing: Wellbeing
    overview: Overview
    journaled: Noted
    clock: Callable[[], int]


def services(parts: Parts) -> Offer:
    """Every operation, by name."""
    store, roll, wire, now_ms = parts.store, parts.roll, parts.connection.wire, parts.clock
    gates = Gates(store, Signing(store, now_ms), wire, now_ms)
    around = Surroundings(
        parts.ask,
        parts.topology.unread,
        parts.bus.fetch_payload,
        roll,
        now_ms,
        parts.jitter,
        parts.admission.turns.take,
    )
    lookups = Lookups(store, parts.settled, roll, now_ms, parts.admission.explain)
    read = _reading(store)
    by_people = Interventions(parts.ask, gates.decide, read, lookups.show, now_ms)
    tasks, journal = TaskOperations(around), Journal(store, parts.hold, now_ms, parts.journaled)
    documents = Documents(store, wire.publish, now_ms)
    exports = Exports(store, read, journal.read, parts.bus.fetch_payload, now_ms)
    people = {
        **tasks.operations(),
        **Running(tasks, lookups, parts.settled).operations(),
        **lookups.operations(),
        **Timelines(store, read, now_ms).operations(),
        **by_people.operations(),
        **Moves(store, parts.ask, read, lookups.show, now_ms).operations(),
        **Forks(store, parts.ask, read, now_ms).operations(),
        **exports.operations(),
        **WaitingList(store, gates.waiting).operations(),
        **parts.catalogue.operations(),
        **journal.operations(),
        **gates.operations(),
        **documents.operations(),
        **Audits(store).operations(),
        **Batching(store, parts.ask, now_ms).operations(),
        **DeadLetters(store, wire, Vouching(parts.command_keys.key_for)).operations(),
        **Webhooks(store, parts.command_keys.key_for, now_ms).operations(),
        **parts.admission.operations(),
        **parts.overview.operations(),
        **parts.wellbeing.operations(),
        **whoami.operations(),
    }
    agents = {
        **tasks.agent_operations(),
        **journal.agent_operations(),
        **gates.agent_operations(),
        **documents.operations(),
        **parts.command_keys.agent_operations(parts.admission.declared.is_paced),
    }
    return Offer(people, agents)


def _reading(store: Store) -> Callable[[UUID], Awaitable[Loaded]]:
    async def read(task: UUID) -> Loaded:
        found = (await store.read([task])).get(task)
        if found is None:
            raise Refusal(f"there is no task {task}", 404)
        return found

    return read
