"""What each operation is for, in a line, and examples of what is asked and answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Example:
    """A request, and a reply where one tells more than its schema."""

    request: Json
    reply: Json | None = None


TASK = "01a228d3-8b1d-728f-a4a8-c99741d7b99b"
AT, LATER = "2026-01-31T09:30:00.250Z", "2026-01-31T09:30:02.125Z"
_OF_TASK: Json = {"task": TASK}
_WHY: Json = {"reason": "the supplier called back"}
_OF_STEP = _OF_TASK | {"step": "pay"}
_OF_DOCUMENT: Json = {"collection": "orders", "key": "M-0007"}
_ROW: Json = {
    "task": TASK,
    "saga": "order",
    "saga_version": 1,
    "status": "parked",
    "version": 9,
    "reason": "step 'pay': its outcome is not known",
    "created_at": AT,
    "updated_at": LATER,
    "owner": "shop",
}
_RECEIPT: Json = {"task": TASK, "saga": "order", "version": 1, "created": True}
_SUBMISSION: Json = {
    "saga": "order",
    "input": {"order": "M-0007", "amount_cents": 1250},
    "attributes": {"customer": "c-19"},
}

SUMMARIES: Mapping[str, str] = {
    "health": "How this coordinator and its servers are",
    "whoami": "Who asks, with which role, and what that one may ask for",
    "overview": "How the whole system is, now and over the last hour",
    "submit": "Hand in a task",
    "submit.many": "Hand in up to 256 tasks, each accepted or refused by itself",
    "run": "Hand in a task, and answer once it is settled",
    "get": "A task as it is now, or once it is settled",
    "list": "Tasks, newest first",
    "history": "All that happened to a task, oldest first",
    "timeline": "A task's history as bars and marks in time",
    "step": "A step's input, result, error and attempts",
    "export": "All that is known of a task, in one document",
    "journal.read": "What the agents of a step did, call by call",
    "parked": "All that waits for a person",
    "audit": "Who did what, when and why, oldest first",
    "cancel": "Stop a task and undo what it did",
    "retry": "Begin another series of attempts for a stuck step",
    "resume": "Begin another series of attempts for all stuck steps",
    "settle": "State how a stuck step really ended",
    "approve": "Approve a step, or a tool's call, that waits for it",
    "reject": "Reject a step, or a tool's call, that waits for approval",
    "signal": "Send a signal to a task",
    "move": "Have a task go on under another version of its saga",
    "fork": "Begin a new task from a step of another one",
    "batch": "Cancel, retry or resume all tasks that a filter finds",
    "journal.settle": "State how a tool's call really ended",
    "saga.register": "Register a version of a saga",
    "saga.get": "A saga with its definition",
    "saga.list": "The sagas that are registered, each version",
    "agents": "The agents: who is there, and what waits for each",
    "agents.pause": "Deliver no commands to an agent",
    "agents.resume": "Deliver commands to an agent again",
    "limits.list": "The limits that are declared, and how they are used",
    "limits.set": "Declare a limit",
    "limits.remove": "Remove a limit",
    "dead.list": "The dead letters, newest first",
    "dead.get": "A dead letter with the message that it is about",
    "dead.replay": "Publish the message of a dead letter again",
    "dead.drop": "Put a dead letter aside",
    "webhook.create": "Make a webhook whose calls become signals",
    "webhook.list": "The webhooks",
    "webhook.rotate": "Change the secret of a webhook",
    "webhook.remove": "Remove a webhook",
    "gate.decide": "Approve or reject a tool's call",
    "gate.redeem": "Use a gate token up",
    "gate.keys": "The public keys that gate tokens are checked with",
    "document.collection": "Register a collection of documents, or change its rules",
    "document.put": "Write the next version of a document",
    "document.delete": "Delete a document; its versions stay",
    "document.get": "A document, or a version of it",
    "document.list": "The documents of a collection",
    "document.history": "The versions of a document",
    "document.changes": "The changes of a collection, oldest first",
}

EXAMPLES: Mapping[str, Example] = {
    "whoami": Example(
        {},
        {"name": "ann", "role": "submit", "operations": ["cancel", "get", "list", "submit"]},
    ),
    "submit": Example(_SUBMISSION, _RECEIPT),
    "submit.many": Example(
        {"tasks": [_SUBMISSION]}, {"outcomes": [{"receipt": _RECEIPT, "problem": None}]}
    ),
    "run": Example(_SUBMISSION | {"wait_s": 5.0}),
    "get": Example(_OF_TASK | {"wait_s": 5.0}),
    "list": Example(
        {"status": ["parked"], "saga": "order", "attributes": {"customer": "c-19"}, "limit": 50},
        {"tasks": [_ROW], "cursor": None},
    ),
    "history": Example(
        _OF_TASK | {"after": 0, "limit": 100},
        {
            "task": TASK,
            "entries": [{"version": 1, "type": "TaskSubmitted", "at": AT, "data": {}}],
            "more": False,
        },
    ),
    "timeline": Example(_OF_TASK),
    "export": Example(_OF_TASK),
    "journal.read": Example(_OF_STEP | {"phase": "action"}),
    "parked": Example(
        {"saga": "order", "limit": 50},
        {
            "waiting": [
                {
                    "task": TASK,
                    "saga": "order",
                    "kind": "approval",
                    "step": "pay",
                    "reason": "",
                    "since": AT,
                    "actions": ["approve", "reject", "cancel"],
                    "context": "5feceb66ffc86f38",
                    "phase": "action",
                    "invocation": None,
                    "key": "",
                    "tool": "",
                    "details": None,
                }
            ],
            "cursor": None,
        },
    ),
    "audit": Example({"since": AT, "until": LATER, "limit": 100}),
    "cancel": Example(_OF_TASK | {"reason": "the customer changed her mind"}),
    "retry": Example(_OF_STEP | _WHY),
    "resume": Example(_OF_TASK | _WHY),
    "settle": Example(_OF_STEP | {"outcome": "happened", "result": {"receipt": "r-81"}} | _WHY),
    "approve": Example(_OF_STEP | _WHY),
    "reject": Example(_OF_STEP | {"reason": "too dear"}),
    "signal": Example(
        _OF_TASK | {"name": "delivered", "id": "parcel-4711", "payload": {"by": "van"}}
    ),
    "move": Example(_OF_TASK | {"to": 2, "dry_run": True}),
    "fork": Example(_OF_STEP | {"reason": "with the corrected price list"}),
    "batch": Example(
        {
            "action": "retry",
            "filter": {"status": ["parked"], "saga": "order"},
            "dry_run": True,
            "reason": "the bank is back",
        },
        {"matched": 1, "done": 1, "tasks": [TASK], "refused": [], "cursor": None},
    ),
    "webhook.create": Example(
        {
            "name": "parcels",
            "saga": "order",
            "task": "pointer:/order/task",
            "signal": "name:delivered",
            "payload": "/parcel",
        }
    ),
    "webhook.rotate": Example({"name": "parcels", "overlap_s": 86_400, "reason": "once a year"}),
    "webhook.remove": Example({"name": "parcels", "reason": "they send no more"}),
    "journal.settle": Example(
        _OF_STEP
        | {"phase": "action", "key": "charge#1", "outcome": "happened", "result": {"ok": True}}
    ),
    "saga.register": Example(
        {
            "format": 1,
            "name": "order",
            "version": 1,
            "steps": [{"name": "look", "action": "stock.look", "after": [], "read_only": True}],
        }
    ),
    "saga.get": Example({"name": "order", "version": 1}),
    "agents.pause": Example({"agent": "payments", "reason": "the bank has an outage"}),
    "agents.resume": Example({"agent": "payments", "reason": "the bank is back"}),
    "limits.set": Example({"scope": "agent", "name": "payments", "rate": 50.0, "concurrency": 20}),
    "limits.remove": Example({"scope": "agent", "name": "payments"}),
    "dead.list": Example({"limit": 50}),
    "dead.get": Example({"sequence": 4711}),
    "dead.replay": Example({"sequence": 4711, "reason": "the saga is registered now"}),
    "dead.drop": Example({"sequence": 4711, "reason": "a test of ours"}),
    "gate.decide": Example(
        _OF_TASK
        | {
            "invocation": "0b8e6ef1-53f2-5a86-9a1c-2b1ad0b5b3c5",
            "decision": "approved",
            "by": "ann",
        }
    ),
    "gate.redeem": Example(
        {
            "token": "eyJhbGciOiJFZERTQSJ9.…",
            "tool": "charge",
            "arguments_digest": "5feceb66ffc86f38d952786c6d696c79c2dbc239dd4e91b46729d73a27fb57e9",
            "use": "6f1c2f0e-0c0f-4a6d-9a43-51a9d0a3a1de",
        }
    ),
    "document.collection": Example(
        {
            "name": "orders",
            "transitions": {
                "field": "status",
                "initial": ["open"],
                "legal": {"open": ["paid"], "paid": []},
            },
        }
    ),
    "document.put": Example(_OF_DOCUMENT | {"expected": 1, "body": {"status": "paid"}}),
    "document.delete": Example(_OF_DOCUMENT | {"expected": 2}),
    "document.get": Example(_OF_DOCUMENT),
    "document.list": Example({"collection": "orders", "prefix": "M-"}),
    "document.history": Example(_OF_DOCUMENT),
    "document.changes": Example({"collection": "orders", "after": 0}),
}
"""By operation; of those that take nothing, where the answer tells more than its schema."""
