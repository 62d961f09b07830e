"""What the machine asks about a task's input and output, which are no part of its state.

Answers depend on nothing but the task and what is asked, so that a decision made again is the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from headway.sagas.definition import Definition
from headway.sagas.task import Failure, StepStatus, Task


class Checks(Protocol):
    def when(self, expression: str, results: Mapping[str, Any], /) -> bool | Failure:
        """Whether a condition holds, given the results by step of the steps before; a Failure if
        nobody can tell."""

    def rejected(self, output: Any, /) -> str:
        """Why the output is not accepted; "" if it is."""


class _Unchecked:
    """Every condition holds and every output is accepted."""

    def when(self, _expression: str, _results: Mapping[str, Any], /) -> bool | Failure:
        return True

    def rejected(self, _output: Any, /) -> str:
        return ""


UNCHECKED: Checks = _Unchecked()


def results_of(task: Task) -> dict[str, Any]:
    """The results that are known, by step."""
    return {name: state.result for name, state in task.steps.items() if state.known}


def output_of(definition: Definition, task: Task) -> Any:
    """What a task came to: the result of its last step or, if it has several, theirs by name."""
    last = definition.last
    if len(last) == 1:
        return task.steps[last[0]].result
    return {
        name: task.steps[name].result
        for name in last
        if task.steps[name].status is StepStatus.COMPLETED
    }
