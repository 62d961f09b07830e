"""Which role each operation of people needs. Pure.

`view` sees everything and changes nothing; `submit` hands in tasks, sees and cancels its own, and
has no part in documents, which tell of everybody's tasks; `operate` may all. Agents' workers need
no role: the server lets each agent ask for its own only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

VIEW, SUBMIT, OPERATE = "view", "submit", "operate"
ROLES = (VIEW, SUBMIT, OPERATE)  # each may what the ones before it may, but for what is not its own

Own = Literal["", "task", "owner", "never"]
"""How role `submit` is held to its own tasks: by the task that a request names, by the owner that a
list is narrowed to, or by being refused what nobody can narrow."""


@dataclass(frozen=True, slots=True)
class Need:
    """The least role for an operation; "" for anybody, with or without a token."""

    role: str
    own: Own = ""

    def is_met_by(self, role: str) -> bool:
        if role == SUBMIT and self.own == "never":
            return False
        return not self.role or ROLES.index(role) >= ROLES.index(self.role)

    def __str__(self) -> str:
        """For whoever has too small a role."""
        if self.own == "never":
            return " or ".join(repr(role) for role in ROLES if self.is_met_by(role))
        return repr(self.role)


FEED = Need(VIEW, "task")  # on HTTP only: on NATS it is a subject
METRICS = Need(VIEW, "never")  # on HTTP only, and not needed by programs on the same machine

NEEDS: Mapping[str, Need] = {
    "health": Need(""),
    "whoami": Need(VIEW),
    "overview": Need(VIEW, "never"),
    "submit": Need(SUBMIT),
    "submit.many": Need(SUBMIT),
    "run": Need(SUBMIT),
    "get": Need(VIEW, "task"),
    "list": Need(VIEW, "owner"),
    "history": Need(VIEW, "task"),
    "timeline": Need(VIEW, "task"),
    "step": Need(VIEW, "task"),
    "journal.read": Need(VIEW, "task"),
    "parked": Need(VIEW, "owner"),
    "audit": Need(VIEW, "task"),
    "cancel": Need(SUBMIT, "task"),
    "retry": Need(OPERATE),
    "resume": Need(OPERATE),
    "settle": Need(OPERATE),
    "approve": Need(OPERATE),
    "reject": Need(OPERATE),
    "signal": Need(OPERATE),
    "move": Need(OPERATE),
    "fork": Need(OPERATE),
    "export": Need(VIEW, "task"),
    "journal.settle": Need(OPERATE),
    "saga.register": Need(OPERATE),
    "saga.get": Need(VIEW),
    "saga.list": Need(VIEW),
    "agents": Need(VIEW),
    "agents.pause": Need(OPERATE),
    "agents.resume": Need(OPERATE),
    "limits.list": Need(VIEW),
    "limits.set": Need(OPERATE),
    "limits.remove": Need(OPERATE),
    "batch": Need(OPERATE),
    "dead.list": Need(VIEW, "never"),
    "dead.get": Need(VIEW, "never"),
    "dead.replay": Need(OPERATE),
    "dead.drop": Need(OPERATE),
    "webhook.create": Need(OPERATE),
    "webhook.list": Need(VIEW, "never"),
    "webhook.rotate": Need(OPERATE),
    "webhook.remove": Need(OPERATE),
    "gate.decide": Need(OPERATE),
    "gate.redeem": Need(SUBMIT),  # by whoever was handed a gate token
    "gate.keys": Need(""),
    "document.collection": Need(OPERATE),
    "document.put": Need(OPERATE),
    "document.delete": Need(OPERATE),
    "document.get": Need(VIEW, "never"),
    "document.list": Need(VIEW, "never"),
    "document.history": Need(VIEW, "never"),
    "document.changes": Need(VIEW, "never"),
}
