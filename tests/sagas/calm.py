"""What happens next when nothing goes wrong any more, and people do what they are asked to."""

from __future__ import annotations

from corpus import Shape
from headway.sagas import Definition, Phase, Task, outstanding
from headway.sagas import inputs as i
from headway.sagas.transition import children


def next_word(shape: Shape, definition: Definition, task: Task, at: int) -> i.Input | None:
    """What a person, a sender of signals or an agent says next; None when only time is left.

    A person resumes what is parked, and approves. Agents and children succeed.
    """
    if task.parked:
        return i.RetryStuck(at + 1, "somebody", "try again")
    for name, state in task.steps.items():
        step = definition.steps[name]
        if state.outstanding and step.kind == "approval":
            return i.Approval(at, name, True, "somebody", "fine")
        if state.outstanding and step.kind == "wait":
            told = len(task.beside.signal_ids)
            return i.SignalSent(at, step.waits_for, f"calm-{told}", "told")
    for sent in outstanding(definition, task):
        result = shape.may_give(sent.step)[0]
        return i.Succeeded(at, sent.step, sent.phase, sent.attempt, result)
    for sent in children(definition, task):
        undo = sent.phase is Phase.COMPENSATION
        outcome = "compensated" if undo else "succeeded"
        return i.ChildEnded(at, sent.step, sent.attempt, outcome)
    return None
