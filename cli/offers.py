"""The exact commands for what a person may do, to be copied. Pure."""

from __future__ import annotations

import shlex
from uuid import UUID

OUTCOMES = "happened|did-not-happen"


def offer(
    action: str,
    task: UUID,
    *,
    step: str = "",
    invocation: UUID | None = None,
    key: str = "",
    phase: str = "action",
) -> str:
    """The command for an action, to be copied. `key` is of a call that is to be settled."""
    words = ["headway", action, str(task)]
    if invocation is not None:
        words += ["--invocation", str(invocation)]
    elif action == "settle":
        words += [step or "STEP"]
    elif action in ("approve", "reject") or (action == "retry" and step):
        words += [step]
    typed = shlex.join(words)
    if action == "settle":
        typed += f" {OUTCOMES}"
        if key:
            typed += f" --call {shlex.quote(key)}"
            typed += "" if phase == "action" else f" --phase {phase}"
    return typed
