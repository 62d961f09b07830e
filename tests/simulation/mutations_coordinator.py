"""Mistakes in what coordinators do: engine, inlets, bus, sweep, housekeeping, children, store."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any
from uuid import UUID

from headway.agents.pull import ACK
from headway.coordinator import engine as engine_module
from headway.coordinator import family as family_module
from headway.coordinator import sweep as sweep_module
from headway.coordinator.bus import Bus
from headway.coordinator.engine import Engine
from headway.coordinator.family import Family
from headway.coordinator.housekeeping import Housekeeping
from headway.coordinator.inlets import Inlets
from headway.coordinator.journal import Journal
from headway.coordinator.operations import TaskOperations
from headway.coordinator.recent import Recent
from headway.coordinator.succession import Succession
from headway.coordinator.sweep import Sweep
from headway.coordinator.topology import Topology
from headway.coordinator.watch import Watch
from simulation import store_tasks
from simulation.mutants import Mutation, instead, wrapped
from simulation.store_tables import STATEMENTS

CRASHES = {"crash": 0.3}
REJECTS = {"handler_rejects": 0.3}
PARENTS = ("parent",)


# Engine and inlets


def _any_publication(original: Any, *of: Any) -> Any:
    return original(*of)._replace(epoch=0)


def _ack_event_first(original: Any, self: Inlets, delivery: Any, *rest: Any) -> None:
    self._acknowledge(delivery.reply, ACK)
    original(self, delivery, *rest)


async def _publish_first(original: Any, self: Engine, decisions: Any) -> Any:
    await self._publish(engine_module.Committed(decisions))
    return await original(self, decisions)


async def _answer_first(original: Any, self: Engine, decisions: Any) -> Any:
    for decision in decisions:
        engine_module._answer(decision, at_commit=True)
    return await original(self, decisions)


async def _drop_lost(original: Any, self: Engine, decisions: Any) -> Any:
    await original(self, decisions)
    return set()


async def _decide_at_hand(
    _original: Any, self: Engine, groups: Any, *, known_new: Any, fresh: bool
) -> Any:
    definitions = await self._definitions(groups, fresh=fresh)
    at_hand = {} if fresh else self._recent.look(groups)
    wanted = [task for task in groups if task not in at_hand and task not in known_new]
    stored = await self._truth.load(wanted)
    return [
        engine_module.decide(group, at_hand.get(task) or stored.get(task), definitions, self._check)
        for task, group in groups.items()
    ]


def _conclude_without_a_look(
    _original: Any, self: Engine, decision: Any, *, confirmed: bool
) -> None:
    self._announce(decision)
    self._tell_parent(decision)
    engine_module._answer(decision, at_commit=False)


async def _say_stored(original: Any, self: Engine, decisions: Any) -> Any:
    await original(self, decisions)
    return set()


def _keep_without_end(original: Any, self: Recent, task: Any, size: int) -> None:
    self._kept[task.id] = task, size


async def _grant_any(original: Any, self: TaskOperations, request: Any, *rest: Any) -> Any:
    reply = await original(self, request, *rest)
    return (
        reply
        if reply.granted
        else reply.model_copy(update={"granted": True, "epoch": request.epoch})
    )


# Bus


async def _leave_older(_original: Any, self: Bus, subject: str, body: bytes) -> bool:
    return True


async def _never_begun(original: Any, self: Bus, command: Any) -> bool:
    await original(self, command)
    return True


async def _withdraw_nothing(_original: Any, self: Bus, commands: Any) -> set[str]:
    return set()


# Sweep, housekeeping, watch


async def _nothing(_original: Any, *_arguments: Any, **_options: Any) -> int:
    return 0


def _nothing_at_once(_original: Any, *_arguments: Any, **_options: Any) -> None:
    return


async def _nobody(_original: Any, *_arguments: Any) -> set[Any]:
    return set()


async def _all_there(_original: Any, self: Topology, commands: Any) -> set[str]:
    return set(commands)


async def _look_over_only_a_while(original: Any, self: Sweep, due_before_ms: Any) -> int:
    return 0 if due_before_ms is None else await original(self, due_before_ms)


async def _wait_for_streams(_original: Any, self: Housekeeping) -> None:
    rows = await self._store.fetch("stream_identities")
    if not rows:
        await _original(self)


async def _hold_all(original: Any, self: Watch, *arguments: Any) -> Any:
    return None


# Children


_numbers = itertools.count()


def _another_child(original: Any, parent: UUID, step: str, attempt: int) -> UUID:
    found: UUID = original(parent, f"{step}{next(_numbers)}", attempt)
    return found


async def _undo_no_child(_original: Any, self: Family, parent: Any, action: Any) -> None:
    await self._report(parent.id, action, "compensated", "it never began")


def _tell_no_parent(_original: Any, self: Engine, decision: Any) -> None:
    return


# What is stored


def _any_version(_original: Any, tables: Any, task: UUID, expected: int) -> bool:
    return task in tables.tasks


def _lose_last_event(original: Any, tables: Any, changed: Any, new: Any, history: Any) -> Any:
    return original(tables, changed, new, history[:-1] if len(history) > 1 else history)


def _statement(name: str, mistake: Any) -> tuple[Any, str, Any]:
    return STATEMENTS, name, wrapped(mistake)


def _on(owner: Any, name: str, mistake: Any) -> tuple[Any, str, Any]:
    return owner, name, wrapped(mistake)


_NO_LOOK_OVER = _on(Sweep, "look_over", _nothing)

COORDINATOR = (
    Mutation(
        "a publication that nobody is granted any more passes for the command",
        (_on(sweep_module, "sought_of", _any_publication),),
        {"crash_at_commit": 0.06, "crash": 0.35},
    ),
    Mutation(
        "an event is acked before it is committed",
        (_on(Inlets, "_put_event", _ack_event_first),),
    ),
    Mutation(
        "a submission is acked before it is committed",
        (_on(Inlets, "_put_task", _ack_event_first),),
        CRASHES | {"store_down": 0.2},
    ),
    Mutation("commands are published before the commit", (_on(Engine, "_write", _publish_first),)),
    Mutation(
        "a submission is answered before the commit",
        (_on(Engine, "_write", _answer_first),),
        {"store_down": 0.4, "crash": 0.6},
    ),
    Mutation(
        "an item that lost its race is dropped as if it were done",
        (_on(Engine, "_write", _drop_lost),),
    ),
    Mutation(
        "that nothing changes is decided on a state that may be old",
        (_on(Engine, "_decide", _decide_at_hand),),
    ),
    Mutation("the version is not checked", ((store_tasks, "_stands", wrapped(_any_version)),)),
    Mutation(
        "the last event of a batch is not appended",
        (_on(store_tasks, "_commit", _lose_last_event),),
        quick=True,
    ),
    Mutation(
        "nothing is looked after that was cut short, or may not be stored",
        (_on(Engine, "_conclude", _conclude_without_a_look),),
        {"lose": 0.05},
        quiet=True,
    ),
    Mutation(
        "a command whose PubAck is lost counts as stored",
        (_on(Engine, "_publish", _say_stored),),
        {"lose": 0.03},
        quiet=True,
    ),
    Mutation(
        "every claim is granted",
        (_on(TaskOperations, "claim", _grant_any),),
        {"lose": 0.04},
        quiet=True,
    ),
    Mutation("an older command on a subject is left there", (_on(Bus, "_replace", _leave_older),)),
    Mutation(
        "a running step that is withdrawn counts as never begun",
        (_on(Bus, "_removed_unbegun", _never_begun),),
        {"people": 0.6, "handler_slow": 0.6},
        quiet=True,
        sagas=("linear", "fan"),
    ),
    Mutation(
        "the sweep takes every dispatch for lost",
        (_on(Topology, "outstanding", _nobody),),
        {"lose_ack_of_store": 0.5},
        quiet=True,
    ),
    Mutation("the sweep takes no dispatch for lost", (_on(Topology, "outstanding", _all_there),)),
    Mutation("suspects are forgotten", (_on(Sweep, "suspect", _nothing_at_once), _NO_LOOK_OVER)),
    Mutation(
        "a store that is lost is not published again",
        (_on(Sweep, "look_over", _look_over_only_a_while),),
        {"wipe": 0.3},
        quiet=True,
    ),
    Mutation(
        "a stream that is gone is not made again",
        (_on(Housekeeping, "tend_streams", _wait_for_streams),),
        {"wipe": 0.1},
    ),
    Mutation(
        "a reconnect is no reason to look",
        (_on(Housekeeping, "nats_was_away", _nothing_at_once),),
        {"broker_kill": 0.4},
        quiet=True,
    ),
    Mutation(
        "nothing is ever looked over, not at the start either",
        (_NO_LOOK_OVER,),
        {"crash": 0.6},
        quiet=True,
    ),
    Mutation("no timer is ever due", (_statement("claim_due", lambda *_: []),)),
    Mutation(
        "a child gets another id each time",
        ((family_module, "child_id", wrapped(_another_child)),),
        REJECTS,
        sagas=PARENTS,
    ),
    Mutation(
        "a child is not undone", (_on(Family, "undo", _undo_no_child),), REJECTS, sagas=PARENTS
    ),
    Mutation(
        "a child's end is not told", (_on(Engine, "_tell_parent", _tell_no_parent),), sagas=PARENTS
    ),
)

__all__ = ["COORDINATOR", "Journal", "Succession", "instead", "replace"]
