"""Mistakes in what agents do: worker, settlement, claims, journal and its calls; and where
coordinators keep the journals."""

from __future__ import annotations

from typing import Any

from headway.agents import invocations, reconciliation, trial
from headway.agents.attempt import Attempt
from headway.agents.errors import Superseded
from headway.agents.invocations import Calls
from headway.agents.journal import Journal as AgentJournal
from headway.agents.pull import ACK, Pull
from headway.agents.repeats import Repeats
from headway.agents.settlement import Settlement
from headway.agents.worker import Worker
from headway.coordinator import journaling
from simulation import store_journals
from simulation.mutants import Mutation, instead, wrapped

ERRANDS = ("errands",)
ZOMBIES = {"freeze_at_effect": 0.25}
DEATHS = {"crash_at_effect": 0.15}


def _ack_before_the_event(original: Any, self: Settlement, event: bytes) -> None:
    if not self.reported and not self.settled:
        self._wire.publish(self._delivery.reply, ACK)
    original(self, event)


def _settle_unconfirmed(_original: Any, self: Settlement, _error: Any) -> None:
    self._settle(ACK)


def _ack_anothers(_original: Any, self: Settlement) -> None:
    self._settle(ACK)


async def _drop_anothers(original: Any, self: Attempt, first: bool) -> bool:
    try:
        return bool(await original(self, first))
    except Superseded:
        return False


def _never_keep(_original: Any, self: Worker) -> None:
    return


def _never_again(_original: Any, self: Pull) -> None:
    return


async def _do_not_wait(_original: Any, self: Calls, *_arguments: Any) -> None:
    return


async def _whatever_was_said(original: Any, self: Calls, *arguments: Any) -> None:
    try:
        await original(self, *arguments)
    except invocations.HeadwayError:
        return


def _under_any_epoch(
    original: Any, request: Any, agent: str, rows: Any, head: Any, *rest: Any
) -> Any:
    request = request.model_copy(update={"epoch": head.epoch, "seq": head.seq + 1})
    return original(request, agent, rows, head, *rest)


def _same_epoch(original: Any, *arguments: Any) -> Any:
    changes = original(*arguments)
    return [
        each._replace(after=each.after._replace(epoch=max(1, each.before.epoch)))
        for each in changes
    ]


async def _forget_open_calls(_original: Any, open_calls: Any, *_rest: Any) -> None:
    for recorded in open_calls:
        recorded.voided = True


async def _result_unwritten(
    original: Any, self: AgentJournal, *entries: Any, **options: Any
) -> None:
    if all(entry.kind != "result" for entry in entries):
        await original(self, *entries, **options)


def _anywhere(_original: Any, tables: Any, row: Any) -> bool:
    return row[:3] in tables.journals


AGENTS = (
    Mutation(
        "a command is acked before its event is stored",
        ((Settlement, "report", wrapped(_ack_before_the_event)),),
        {"lose": 0.04, "crash": 0.2},
        quiet=True,
    ),
    Mutation(
        "an event that is not confirmed counts as stored",
        ((Settlement, "_on_stored", wrapped(_settle_unconfirmed)),),
        {"lose": 0.05},
        quiet=True,
    ),
    Mutation(
        "a worker that was superseded acks the other's command",
        ((Settlement, "abandon", wrapped(_ack_anothers)),),
        ZOMBIES,
        quiet=True,
        sagas=ERRANDS,
    ),
    Mutation(
        "a command that a later delivery has won is acked",
        ((Attempt, "_claim", wrapped(_drop_anothers)),),
        ZOMBIES,
        quiet=True,
        sagas=ERRANDS,
    ),
    Mutation(
        "a worker gives no sign of life",
        ((Worker, "_keep_all", wrapped(_never_keep)),),
        {"handler_slow": 0.5},
        quiet=True,
        quick=True,
    ),
    Mutation(
        "a pull does not start over after a reconnect",
        ((Pull, "_start_over", wrapped(_never_again)),),
        {"cut": 0.2},
    ),
    Mutation(
        "a command that may have been run is run without a claim",
        ((Repeats, "may_be", instead(lambda *_: False)),),
        {"lose": 0.04},
        quiet=True,
    ),
    Mutation(
        "a tool runs before its intent is committed",
        ((Calls, "_certain", wrapped(_do_not_wait)),),
        DEATHS,
        quiet=True,
        sagas=ERRANDS,
        quick=True,
    ),
    Mutation(
        "a tool runs though its intent was refused",
        ((Calls, "_certain", wrapped(_whatever_was_said)),),
        ZOMBIES,
        quiet=True,
        sagas=ERRANDS,
    ),
    Mutation(
        "a worker that was frozen does not make sure before it runs a tool",
        ((trial, "CONFIRM_AFTER_S", instead(1e9)),),
        ZOMBIES,
        quiet=True,
        sagas=ERRANDS,
    ),
    Mutation(
        "open calls are forgotten at a take-over",
        ((reconciliation, "settle", wrapped(_forget_open_calls)),),
        DEATHS,
        quiet=True,
        sagas=ERRANDS,
    ),
    Mutation(
        "a tool with a check is run again without asking it",
        ((reconciliation, "RUN_AGAIN", instead(("natural", "dedupe_key", "check"))),),
        DEATHS,
        quiet=True,
        sagas=ERRANDS,
    ),
    Mutation(
        "the journal takes entries under any epoch",
        ((journaling, "appended", wrapped(_under_any_epoch)),),
        ZOMBIES,
        quiet=True,
        sagas=ERRANDS,
    ),
    Mutation(
        "the journal is opened again under the same epoch",
        ((journaling, "opened", wrapped(_same_epoch)),),
        ZOMBIES,
        quiet=True,
        sagas=ERRANDS,
    ),
    Mutation(
        "the journal is opened for whoever asks",
        ((journaling, "_check_outstanding", instead(lambda *_: None)),),
        {"freeze_at_effect": 0.4},
        quiet=True,
        sagas=ERRANDS,
    ),
    Mutation(
        "a journal is written wherever it stands",
        ((store_journals, "_stands", wrapped(_anywhere)),),
        ZOMBIES,
        quiet=True,
        sagas=ERRANDS,
    ),
    Mutation(
        "a tool's result is not written down",
        ((AgentJournal, "append", wrapped(_result_unwritten)),),
        DEATHS,
        quiet=True,
        sagas=ERRANDS,
    ),
)
