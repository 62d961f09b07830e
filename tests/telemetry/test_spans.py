"""Spans of every stored history: each once, however commits cut it; filled in as they are made."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from harness.histories import FILES, told
from headway.agents.identity import new_task_id
from headway.coordinator import span_debts
from headway.coordinator.otlp_spans import encoded
from headway.coordinator.records import Trace
from headway.coordinator.span_debts import asked
from headway.coordinator.span_forms import Forms
from headway.coordinator.spans import Traced, spans
from headway.sagas import Definition
from headway.sagas import events as e

ORIGIN = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
COMMITS_MAX = 4  # events in one


@cache
def heartless(file: Path) -> tuple[Definition, list[e.Event]]:
    """What a file tells, but for signs of life."""
    definition, events = told(file)
    return definition, [event for event in events if not isinstance(event, e.AttemptHeartbeat)]


def traced(definition: Definition, began: int, *, origin: str = "", child: bool = False) -> Traced:
    return Traced(
        *(new_task_id(), definition, Trace(True, origin), child, random.randbytes(32), began)
    )


def seeded() -> random.Random:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    return random.Random(seed)


def at_other_times(history: list[e.Event], rng: random.Random) -> list[e.Event]:
    """As it went, but at times of its own, some of them the same."""
    now, moved = rng.randrange(1 << 40), []
    for event in history:
        now += rng.choice((0, 0, 1, 1_000, 100_000))
        moved.append(replace(event, at=now))
    return moved


@pytest.mark.parametrize("long_ms", [0, 1_000, 30_000])
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_however_commits_cut_a_history_each_span_is_due_once(
    file: Path, long_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(span_debts, "LONG_MS", long_ms)
    definition, history = heartless(file)
    task, rng = traced(definition, history[0].at), seeded()
    given: Counter[bytes] = Counter()
    read = 0
    while read < len(history):
        version = min(len(history), read + rng.randint(1, COMMITS_MAX))
        if asked(history[read:version], task.created_at):
            sent = asked(history[:read], task.created_at)
            due = history[: asked(history[:version], task.created_at)]
            given.update(span.span_id for span in spans(task, due, (), sent))
        read = version
    whole = spans(task, history[: asked(history, task.created_at)])
    assert given == Counter(span.span_id for span in whole)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_is_filled_in_is_what_would_be_made(file: Path) -> None:
    definition, history = heartless(file)
    rng = seeded()
    forms = Forms()
    for version in range(1, len(history) + 1):
        sent = rng.choice((0, 0, rng.randrange(version)))
        for origin, child in (("", False), (ORIGIN, False), (ORIGIN, True)):
            for _ in range(3):
                task = traced(definition, history[0].at, origin=origin, child=child)
                so_far = at_other_times(history[:version], rng)
                made = encoded(spans(task, so_far, (), sent))
                assert forms.encoded(task, so_far, sent) == made


PLAIN = {e.AttemptDispatched, e.StepCompleted, e.TaskSubmitted, e.TaskSucceeded}


def test_tasks_that_go_well_are_filled_in(monkeypatch: pytest.MonkeyPatch) -> None:
    found = 0
    for definition, history in map(heartless, FILES):
        if {type(event) for event in history} != PLAIN or any(
            step.kind == "child" for step in definition.steps.values()
        ):
            continue
        found += 1
        forms = Forms()
        for _ in range(2):
            forms.encoded(traced(definition, history[0].at), history, 0)
        with monkeypatch.context() as patch:
            patch.setattr("headway.coordinator.span_forms.spans", None)
            assert forms.encoded(traced(definition, history[0].at), history, 0)
    assert found


def test_a_form_is_only_kept_while_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway.coordinator.span_forms.FORMS_MAX", 1)
    forms = Forms()
    for definition, history in map(heartless, FILES):
        task = traced(definition, history[0].at)
        for _ in range(3):
            assert forms.encoded(task, history, 0) == encoded(spans(task, history))
    assert len(forms._forms) == len(forms._seen) == 1
