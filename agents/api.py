"""Asking a coordinator: one request on `hw.api.<operation>`, its answer or our error."""

from __future__ import annotations

import orjson
from headway.agents import payloads
from headway.agents.connection import Connection
from headway.agents.errors import Conflict, InvalidInput, NotFound, Refused, Unavailable
from headway.agents.subjects import api_subject

ERROR = "Nats-Service-Error"
ERROR_CODE = "Nats-Service-Error-Code"

_REFERENCE = b'{"dataref":'


async def call(connection: Connection, operation: str, body: bytes, timeout: float) -> bytes:
    """One try of an operation, at most `timeout` seconds; the answer's JSON.

    Raises Unavailable if nobody answers or the coordinator cannot work now (its code 5xx),
    else Refused (a more telling subclass where there is one) or InvalidInput as it answers.
    """
    message = await connection.wire.ask(api_subject(operation), body, timeout)
    headers = message.headers or {}
    if ERROR_CODE in headers or ERROR in headers:
        raise _error(headers.get(ERROR_CODE, "500"), headers.get(ERROR, ""), message.data)
    if message.data.startswith(_REFERENCE):
        reference = orjson.loads(message.data)
        return await payloads.get(connection.nc, reference["dataref"], reference["datadigest"])
    return message.data


def _error(code_text: str, title: str, body: bytes) -> Exception:
    code = int(code_text) if code_text.isdigit() else 500
    reason = _detail(body) or title or f"the coordinator answered {code}"
    if code >= 500:
        return Unavailable(reason)
    if code in (413, 422):
        return InvalidInput(reason)
    kind = {404: NotFound, 409: Conflict}.get(code, Refused)
    return kind(reason, code=code)


def _detail(body: bytes) -> str:
    """The `detail` of a problem object (RFC 9457), if the body is one."""
    try:
        problem = orjson.loads(body)
    except orjson.JSONDecodeError:
        return ""
    return str(problem.get("detail", "")) if isinstance(problem, dict) else ""
