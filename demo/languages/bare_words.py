"""The rules of the agent contract that need no network, as agents/asyncapi.yaml has them. Pure, but
for the time of day."""

from __future__ import annotations

import base64
import hmac
import json
import time
import uuid
from typing import Any

from nats.aio.msg import Msg

INLINE_MAX_BYTES = 262_144
RESULT_MAX_BYTES = 1_048_576
MESSAGE_MAX_CHARS = 2_000

_HEAD, _TAIL, _SIGNATURE_CHARS = b'{"sig":"', b'",', 43
_REST = len(_HEAD) + _SIGNATURE_CHARS + len(_TAIL)


class Rejected(Exception):
    """A business failure that left nothing behind."""


class Later(Exception):
    """Not now: to be asked again after so many ms."""

    def __init__(self, after_ms: int) -> None:
        super().__init__("try again later")
        self.after_ms = after_ms


class InvalidInput(Exception):
    """The input does not fit the action; raised before any effect."""


class PayloadLost(Exception):
    """What a command refers to is not to be had."""


class Empty:
    """Returned by a compensation that found nothing to undo."""


def complaint(key: bytes, subject: str, body: bytes) -> str:
    """What is wrong with a command's signature; "" if nothing is."""
    if not body.startswith(_HEAD) or body[_REST - len(_TAIL) : _REST] != _TAIL:
        return "not signed: commands come from a coordinator, which signs them"
    digest = hmac.digest(key, subject.encode() + b"\0" + body[_REST:], "sha256")
    wanted = base64.urlsafe_b64encode(digest).rstrip(b"=")
    if hmac.compare_digest(body[len(_HEAD) : _REST - len(_TAIL)], wanted):
        return ""
    return "the signature does not fit: no coordinator wrote this for this subject"


def read(subject: str, body: bytes) -> tuple[str, dict[str, Any]]:
    """The action and the command; raises ValueError, KeyError or TypeError if it is none."""
    *_, action, task, step = subject.split(".")
    command = json.loads(body.decode())
    if (command["task"], command["step"]) != (task, step):
        raise ValueError("the command names another task or step than its subject does")
    uuid.UUID(task)
    numbers = isinstance(command["attempt"], int) and isinstance(command["epoch"], int)
    if not numbers or command["phase"] not in ("action", "compensation") or not command["id"]:
        raise ValueError("not a command")
    if not isinstance(command.get("data"), dict) and not command.get("dataref"):
        raise ValueError("the command has neither data nor a dataref")
    return action, command


def is_fresh(command: dict[str, Any], msg: Msg) -> bool:
    """Whether a command comes for the first time, but for what this instance remembers."""
    stored = msg.metadata.timestamp.timestamp()
    return (
        msg.metadata.num_delivered == 1
        and command["epoch"] == 0
        and not command.get("late")
        and time.time() - stored < 30
        and abs(stored * 1000 - command.get("sentms", 0)) <= 5_000
    )


def operation_id(command: dict[str, Any], phase: str = "") -> str:
    """The id of the command's operation, or of its step's in another phase."""
    return str(
        uuid.uuid5(uuid.UUID(command["task"]), f"{command['step']}/{phase or command['phase']}")
    )


def failure(error: BaseException) -> dict[str, Any]:
    """What an error of a handler means."""
    text = str(error).replace("\0", "")[:MESSAGE_MAX_CHARS]
    said: dict[str, Any] = {"type": type(error).__name__, "message": text}
    match error:
        case Rejected():
            return said | {"type": "Reject", "retryable": False, "noeffect": True}
        case InvalidInput():
            return said | {"retryable": False, "noeffect": True}
        case Later():
            return said | {"type": "Retry", "retryafterms": error.after_ms}
        case PayloadLost():
            return said | {"noeffect": True}
    return said


def outcome(phase: str, returned: Any) -> dict[str, Any]:
    """The data of the event that follows from what a handler returned."""
    if phase == "compensation" and isinstance(returned, Empty):
        return {"empty": True}
    try:
        size = len(json.dumps(returned, allow_nan=False, ensure_ascii=False).encode())
    except (TypeError, ValueError, RecursionError) as error:
        return {"error": failure(error) | {"type": "InvalidResult", "retryable": False}}
    if size > RESULT_MAX_BYTES:
        text = f"the result has {size} bytes, more than {RESULT_MAX_BYTES}"
        return {"error": {"type": "ResultTooLarge", "message": text, "retryable": False}}
    return {"result": returned}
