"""How saga definitions look to a person."""

from __future__ import annotations

import orjson
from headway.agents.catalogue_views import SagaList, SagaView
from headway.cli.wording import DETAIL_CHARACTERS_MAX, cut, moment, table_of
from headway.sagas.definition import Definition
from headway.sagas.step import Step
from rich.console import Group, RenderableType
from rich.text import Text


def sagas(listed: SagaList) -> RenderableType:
    table = table_of("saga", "version", "digest", "registered", "tasks")
    for saga in listed.sagas:
        table.add_row(
            Text(saga.name),
            Text(str(saga.version), justify="right"),
            Text(saga.digest[:12]),
            Text(moment(saga.registered_at), no_wrap=True),
            Text(", ".join(f"{count} {status}" for status, count in saga.counts.items())),
        )
    return table


def saga(view: SagaView) -> RenderableType:
    """One definition: its steps in an order that can run, and their policies."""
    definition = Definition.from_json(orjson.dumps(view.definition))
    headline = f"{view.name} v{view.version}  digest {view.digest[:12]}"
    table = table_of(
        "step", "kind", "what", "after", "only when", "undone by", "attempts", "limit", "remarks"
    )
    for step in definition.steps.values():
        acting = step.kind == "action"
        limits = step.timeouts
        limit = limits.start_to_close if acting else limits.schedule_to_close
        table.add_row(
            Text(step.name),
            Text(step.kind),
            Text(_what(step)),
            Text(", ".join(step.after)),
            Text(cut(step.when, DETAIL_CHARACTERS_MAX)),
            Text(_undone_by(step)),
            Text(str(step.retry.maximum_attempts or "no limit") if acting else "", justify="right"),
            Text("" if limit is None else f"{limit:g} s", justify="right"),
            Text("pivot" if step.pivot else "read only" if step.read_only else ""),
        )
    return Group(Text(headline), table)


def _what(step: Step) -> str:
    """What a step does, or is for."""
    match step.kind:
        case "wait":
            return f"signal {step.waits_for}"
        case "sleep":
            return f"{step.seconds:g} s"
        case "child":
            return f"saga {step.saga}" + (f" v{step.saga_version}" if step.saga_version else "")
        case "approval":
            return f"{step.default} by default" if step.default else "a person's word"
        case _:
            return step.action


def _undone_by(step: Step) -> str:
    if step.kind == "child" and step.undoable:
        return "its own compensations"
    return step.compensate or ""
