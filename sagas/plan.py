"""A task's plan: its saga's steps and those that its own steps appended.

A step that was handed off to comes after the one that did so, and whatever came after that one
comes after it too.
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
        for each in plan:
            own = _extended(own, each)
        while len(_plans) >= PLANS_MAX:
            del _plans[next(iter(_plans))]
        found = _plans[key] = own
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


def _extended(definition: Definition, appended: Appended) -> Definition:
    new = replace(appended.step, after=(*appended.step.after, appended.by))
    followers = tuple(
        replace(step, after=(*step.after, new.name)) if appended.by in step.after else step
        for step in definition.steps.values()
    )
    return definition.with_steps((*followers, new))


def _free_name(action: str, taken: set[str]) -> str:
    stem = action.replace(".", "-")[:56]
    number = 1
    while f"{stem}-{number}" in taken:
        number += 1
    return f"{stem}-{number}"
