"""Asking a coordinator: one request, its answer or our error.

People ask on `hw.api.<operation>`, agents' workers on `hw.agents.<agent>.<operation>`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import orjson
from headway.agents import payloads, plainjson
from headway.agents.codec import SEALED, Keyring, shown
from headway.agents.connection import Connection
from headway.agents.errors import (
    Conflict,
    HeadwayError,
    InvalidInput,
    NotFound,
    Refused,
    Unavailable,
)
from headway.agents.messages import describe
from headway.agents.patience import patiently
from headway.agents.subjects import agent_subject, api_subject
from headway.agents.views import UNTYPED
from headway.agents.wire import Unanswered
from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

TIMEOUT_S = 30.0  # of a question, all tries together
TRY_TIMEOUT_S = 5.0
ELSEWHERE_AFTER_S = 3.0  # without an answer, after which another server is tried

TOKEN_HEADER = "Headway-Token"  # noqa: S105 - the header's name

ERROR = "Nats-Service-Error"
ERROR_CODE = "Nats-Service-Error-Code"

NOT_UNDERSTOOD = 502  # code of a Refused: the answer is not what we know

START_ONE = "start one with `headway up` or `headway coordinator`"
HELD_UP = (
    f"if one runs, it is frozen, or cut off from NATS or PostgreSQL; if none does, {START_ONE}"
)

_TOKEN = re.compile(r"hw_[0-9a-f]{1,32}_[A-Za-z0-9_-]{1,128}")
_REFERENCE = b'{"dataref":'

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")


async def call(
    connection: Connection,
    subject: str,
    body: bytes,
    timeout: float,
    token: str = "",
    *,
    repeatable: bool = True,
) -> bytes:
    """One try of the operation at `subject`, at most `timeout` seconds, and less if its answer may
    have been lost and it is `repeatable`; the answer's JSON.

    Raises Unavailable if nobody answers or the coordinator cannot work now (its code 5xx),
    else Refused (a more telling subclass where there is one) or InvalidInput as it answers.
    """
    shown = {TOKEN_HEADER: token} if token else None
    message = await connection.wire.ask(subject, body, timeout, shown, repeatable=repeatable)
    headers = message.headers or {}
    if ERROR_CODE in headers or ERROR in headers:
        raise _error(headers.get(ERROR_CODE, "500"), headers.get(ERROR, ""), message.data)
    if message.data.startswith(_REFERENCE):
        reference = orjson.loads(message.data)
        return await payloads.get(connection.wire, reference["dataref"], reference["datadigest"])
    return message.data


def made(model: type[M], **fields: Any) -> M:
    """A request; InvalidInput names the field that does not fit."""
    try:
        return model(**fields)
    except ValidationError as error:
        raise InvalidInput(describe(error)) from error


class Api:
    """Questions to whatever coordinator answers, asked again while none does.

    `timeout` is in seconds and covers all tries of one question. `agent`: whose worker asks.
    `token`: what `headway tokens create` gave to whoever asks; InvalidInput if it cannot be one.
    `keyring`: what decrypts payloads in answers.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        timeout: float = TIMEOUT_S,
        agent: str = "",
        token: str = "",
        keyring: Keyring | None = None,
    ) -> None:
        self.connection = connection
        self._keyring = keyring
        self._token = checked_token(token)
        self.timeout = timeout
        self._agent = agent

    async def ask(
        self,
        operation: str,
        request: BaseModel | bytes,
        reply: type[M],
        *,
        repeatable: bool = True,
        try_s: float | None = None,
    ) -> M:
        """The answer, or what it was refused with; Unavailable says how to get a coordinator.

        What is not `repeatable` is not asked again when it may have been heard; no answer within
        `try_s` seconds (TRY_TIMEOUT_S) counts as one that was not.
        """
        body = request if isinstance(request, bytes) else _encoded(request)
        try_s = min(TRY_TIMEOUT_S if try_s is None else try_s, self.timeout)

        subject = agent_subject(self._agent, operation) if self._agent else api_subject(operation)

        async def once() -> bytes:
            return await call(
                self.connection, subject, body, try_s, self._token, repeatable=repeatable
            )

        answer = await self.insist(operation, once, repeatable=repeatable)
        if self._keyring is not None and SEALED.encode() in answer:
            task = str(getattr(request, "task", None) or "")
            answer = orjson.dumps(shown(orjson.loads(answer), self._keyring, task))
        try:
            return reply.model_validate_json(answer, extra="ignore")
        except ValidationError as error:
            raise Refused(
                f"the coordinator's answer to {operation!r} is not understood; "
                f"are its version and ours the same? {describe(error)}",
                code=NOT_UNDERSTOOD,
            ) from error

    async def insist(
        self, what: str, once: Callable[[], Awaitable[T]], *, repeatable: bool = True
    ) -> T:
        """What `once` returns, tried again while it raises Unavailable and there is time."""
        final = () if repeatable else (Unanswered,)
        began_at = time.monotonic()

        async def once_here_or_elsewhere() -> T:
            try:
                return await once()
            except Unavailable:
                # Agents' connections are looked after by `Isolation`.
                if not self._agent and time.monotonic() - began_at > ELSEWHERE_AFTER_S:
                    await self.connection.move()
                raise

        try:
            return await patiently(
                once_here_or_elsewhere,
                what,
                within_s=self.timeout,
                pause=self.connection.wire.again.pause,
                final=final,
            )
        except final:
            raise
        except Unavailable as error:
            remedy = HELD_UP if isinstance(error, Unanswered) else START_ONE
            raise Unavailable(
                f"no coordinator answers on {self.connection.place}: {what!r} was asked for "
                f"{self.timeout:g} s ({error}); {remedy}"
            ) from error


def checked_token(token: str) -> str:
    """The token, if it can stand in a header; an error does not repeat it."""
    if token and _TOKEN.fullmatch(token) is None:
        raise InvalidInput("the token is not one: `headway tokens create` gives hw_<id>_<secret>")
    return token


def _encoded(request: BaseModel) -> bytes:
    """A request as JSON; InvalidInput if it has what cannot be written so."""
    try:
        body = request.model_dump_json().encode()
    except PydanticSerializationError as error:
        raise InvalidInput(f"this cannot be written as JSON: {error}") from error
    if b"null" in body and not plainjson.is_finite(request.model_dump()):
        raise InvalidInput("this cannot be written as JSON: a number is not finite")
    return body


def _error(code_text: str, title: str, body: bytes) -> HeadwayError:
    code = int(code_text) if code_text.isdigit() else 500
    detail, kind = _problem(body)
    return error_of(code, detail or title or f"the coordinator answered {code}", kind)


def error_of(code: int, reason: str, kind: str = UNTYPED) -> HeadwayError:
    """Our error for an HTTP-like code, its reason and the problem's type."""
    if code >= 500:
        return Unavailable(reason)
    if code in (413, 422):
        return InvalidInput(reason)
    error = {404: NotFound, 409: Conflict}.get(code, Refused)
    return error(reason, code=code, kind=kind)


def _problem(body: bytes) -> tuple[str, str]:
    """`detail` and `type` of a problem object (RFC 9457), if the body is one."""
    try:
        problem = orjson.loads(body)
    except orjson.JSONDecodeError:
        return "", UNTYPED
    if not isinstance(problem, dict):
        return "", UNTYPED
    return str(problem.get("detail", "")), str(problem.get("type", UNTYPED))
