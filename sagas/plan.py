"""A task's plan: its saga's steps and those that its own steps appended.

A step that was handed off to comes after the one that did so, beside the others it handed off to,
and whatever came after that one comes after it too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import orjson
from headway.sagas.circumstances import Appended
from headway.sagas.definition import Definition
from headway.sagas.step import Step

PLANS_MAX = 1_024  # that are remembered

_plans: dict[tuple[str, bytes], Definition] = {}


def planned(definition: Definition, plan: Sequence[Appended]) -> Definition:
    """The definition that a task with this plan runs; DefinitionError if nobody could run it.

    `definition` is the saga's, or one that was planned before.
    """
    if not plan:
        return definition
    key = definition.digest, orjson.dumps(tuple(plan))
    found = _plans.get(key)
    if found is None:
        own = Definition.from_json(definition.body)
        extended = own.with_steps(_extended(tuple(own.steps.values()), plan))
        while len(_plans) >= PLANS_MAX:
            del _plans[next(iter(_plans))]
        found = _plans[key] = extended
    return found


def named(definition: Definition, steps: Sequence[Step]) -> tuple[Step, ...]:
    """The steps, with names for those that have none, after their actions."""
    taken = set(definition.steps) | {step.name for step in steps}
    found = []
    for step in steps:
        name = step.name or _free_name(step.action, taken)
        taken.add(name)
        found.append(replace(step, name=name))
    return tuple(found)


def _extended(steps: tuple[Step, ...], plan: Sequence[Appended]) -> tuple[Step, ...]:
    for appended in plan:
        beside = {other.step.name for other in plan if other.by == appended.by}
        new = replace(appended.step, after=(*appended.step.after, appended.by))
        followers = (
            replace(step, after=(*step.after, new.name))
            if appended.by in step.after and step.name not in beside
            else step
            for step in steps
        )
        steps = (*followers, new)
    return steps


def _free_name(action: str, taken: set[str]) -> str:
    stem = action.replace(".", "-")[:56]
    number = 1
    while f"{stem}-{number}" in taken:
        number += 1
    return f"{stem}-{number}"
