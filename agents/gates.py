"""Gate tokens: leave to call a sensitive tool once, with these arguments, as its task stands now.

A coordinator gives a token only for an intent that is in the journal and not settled, of the
attempt that the task waits for, to a tool that the manifest allows, and, if that was asked, after a
person has approved this very invocation. It lasts TOKEN_LIFETIME_S, and is good for one use.

Whoever is about to act redeems it, right before acting:

    token = await gates.token_for(connection, request, agent=…)  # waits for a person
    await gates.redeem(connection, token, tool=…, arguments_digest=…, agent=…)

`pass_gate` is both, and begins again while the task moves on in between. A downstream that gets the
token along with the call checks it by itself, and then redeems it if it can reach a coordinator:

    keys = await gates.public_keys(connection)               # once; or kept as JSON
    digest = gates.arguments_digest((), {"order": "A-17", "amount": 120})  # by parameter
    gate = gates.verify(token, keys, tool="pay", arguments_digest=digest)

`verify` needs no network. It cannot know whether the token was redeemed before, nor whether its
task has moved on: `redeem` does. A downstream that only verifies must itself see to it that
`gate.invocation` takes effect once.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal
from uuid import UUID, uuid4

import jwt
import orjson
from headway.agents import plainjson
from headway.agents.api import Api
from headway.agents.connection import Connection
from headway.agents.entries import KEY_MAX_CHARS, SUPERSEDED, TOOL_NOT_ALLOWED, Operation
from headway.agents.errors import Halted, HeadwayError, InvalidInput, Refused, Superseded
from headway.agents.patience import patiently
from headway.agents.views import WAIT_MAX_S, Number
from pydantic import BaseModel, ConfigDict, Field

TOKEN_LIFETIME_S = 30
TOKEN_MAX_CHARS = 8_192
REASON_MAX_CHARS = 2_000
NAME_MAX_CHARS = 200
ISSUER = "headway"
ALGORITHM = "EdDSA"
ANSWER_S = 2.0  # for a coordinator to answer, beyond what it is to wait

# Problem types of a refusal; each is also said in words.
FORGED = "gate-forged"  # not signed by one of our keys, or not a token at all
EXPIRED = "gate-expired"
REDEEMED = "gate-redeemed"  # by somebody, before
OTHER_TOOL = "gate-other-tool"
OTHER_ARGUMENTS = "gate-other-arguments"
STALE = "gate-stale"  # the task moved on, or a newer token was given: ask for a new one
CLOSED = "gate-closed"  # the task does not want this call any more
DECIDED = "gate-decided"  # somebody approved or rejected it before

CODES = {
    FORGED: 401,
    EXPIRED: 410,
    REDEEMED: 409,
    OTHER_TOOL: 403,
    OTHER_ARGUMENTS: 403,
    STALE: 409,
    CLOSED: 409,
    DECIDED: 409,
}

Answer = Literal["granted", "waiting", "rejected"]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class GateRequest(Operation):
    """Ask for a token for one invocation, whose intent is in the journal.

    `attempt` and `epoch` are the command's, as granted; `journal_epoch` the one of the journal.
    `invocation` is `identity.invocation_id` of the operation and `key`. With `wait_s`, an answer
    that a person still has to give is waited for so long.
    """

    attempt: Number
    epoch: Number
    journal_epoch: Number
    invocation: UUID
    key: str = Field(min_length=1, max_length=KEY_MAX_CHARS)
    tool: str = Field(min_length=1, max_length=KEY_MAX_CHARS)
    arguments_digest: str = Field(pattern="^[0-9a-f]{64}$")
    requires_approval: bool = False
    wait_s: float = Field(default=0.0, ge=0.0, le=WAIT_MAX_S)


class GateReply(_Model):
    """`granted` with a token; `waiting` for a person; or `rejected` by one, `by` name."""

    status: Answer
    invocation: UUID
    token: str = ""
    by: str = ""
    reason: str = ""


class GateRedeem(_Model):
    """Use a token. `use` is made by whoever uses it: asked again with the same one, because the
    answer was lost, it is answered as the first time; with any other one it is refused."""

    token: str = Field(max_length=TOKEN_MAX_CHARS)
    tool: str
    arguments_digest: str
    use: UUID


class GateRedeemed(_Model):
    """The token was good, and is used now."""

    redeemed_at: datetime


class GateDecide(_Model):
    """A person approves or rejects an invocation that waits for it."""

    task: UUID
    invocation: UUID
    decision: Literal["approved", "rejected"]
    by: str = Field(min_length=1, max_length=NAME_MAX_CHARS)
    reason: str = Field(default="", max_length=REASON_MAX_CHARS)


class GateView(_Model):
    """A gate as people see it: one invocation of one sensitive tool."""

    task: UUID
    step: str
    phase: Literal["action", "compensation"]
    invocation: UUID
    key: str
    tool: str
    arguments_digest: str
    status: Literal["open", "waiting", "approved", "rejected"]
    since: datetime
    by: str = ""
    reason: str = ""
    decided_at: datetime | None = None


class PublicKey(_Model):
    """A key that tokens are checked with, as a JWK (RFC 8037)."""

    kty: Literal["OKP"] = "OKP"
    crv: Literal["Ed25519"] = "Ed25519"
    use: Literal["sig"] = "sig"
    alg: Literal["EdDSA"] = "EdDSA"
    kid: str
    x: str


class PublicKeys(_Model):
    """A JWK set (RFC 7517)."""

    keys: list[PublicKey]


@dataclass(frozen=True, slots=True)
class Gate:
    """What a token says. `agent` is who was given it; `version` is the task's state version that it
    is bound to."""

    task: UUID
    step: str
    phase: str
    agent: str
    attempt: int
    epoch: int
    version: int
    tool: str
    arguments_digest: str
    invocation: UUID
    token_id: UUID
    issued_at: int  # seconds since 1970
    expires_at: int  # seconds since 1970


class GateRefused(Refused):
    """A token, or the wish for one, is refused; `kind` is one of the problem types above."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason, code=CODES[kind], kind=kind)


class GateRejected(HeadwayError):
    """A person, `by` name, decided that this call is not to be made."""

    def __init__(self, reason: str, *, by: str) -> None:
        super().__init__(f"rejected by {by}: {reason}" if reason else f"rejected by {by}")
        self.reason = reason
        self.by = by


def arguments_digest(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """SHA-256, in hex, of the arguments as JSON in which neither white space nor the order of names
    matters. They must be of JSON's types, or of those that orjson writes; else InvalidInput."""
    arguments = [list(args), dict(kwargs)]
    try:
        plainjson.encode(arguments)
    except plainjson.NotPlain as error:
        raise InvalidInput(f"arguments: {error}") from error
    return hashlib.sha256(orjson.dumps(arguments, option=orjson.OPT_SORT_KEYS)).hexdigest()


def verify(
    token: str, keys: PublicKeys, *, tool: str, arguments_digest: str, now: float | None = None
) -> Gate:
    """What the token says, if it is ours, not too old, and for this tool and these arguments.

    Needs no network, so it cannot know of a replay or of a task that moved on: only `redeem` does.
    `now` is in seconds since 1970; by default it is this machine's time. Raises GateRefused.
    """
    gate = read(token, keys)
    check(
        gate, tool=tool, arguments_digest=arguments_digest, now=time.time() if now is None else now
    )
    return gate


def read(token: str, keys: PublicKeys) -> Gate:
    """What the token says, if one of `keys` signed it; GateRefused if not. Checks nothing else."""
    try:
        kid = jwt.get_unverified_header(token).get("kid")
        key = next(key for key in keys.keys if key.kid == kid)
        claims = jwt.decode(
            token,
            jwt.PyJWK(key.model_dump(), ALGORITHM),
            algorithms=[ALGORITHM],
            issuer=ISSUER,
            options={"verify_exp": False, "verify_iat": False, "require": ["exp", "iss"]},
        )
        return _gate(claims)
    except StopIteration:
        raise GateRefused(FORGED, "the gate token is signed with a key that is not ours") from None
    except (jwt.PyJWTError, KeyError, TypeError, ValueError) as error:
        raise GateRefused(FORGED, "the gate token is forged or damaged") from error


def check(gate: Gate, *, tool: str, arguments_digest: str, now: float) -> None:
    """GateRefused if it is too old at `now` (seconds since 1970), or not for this very call."""
    if now >= gate.expires_at:
        raise GateRefused(EXPIRED, f"the gate token expired at {_moment(gate.expires_at)}")
    if tool != gate.tool:
        raise GateRefused(OTHER_TOOL, f"the gate token is for tool {gate.tool!r}, not for {tool!r}")
    if arguments_digest != gate.arguments_digest:
        raise GateRefused(
            OTHER_ARGUMENTS,
            f"the gate token is for a call of {tool!r} with other arguments: digest "
            f"{gate.arguments_digest[:12]}…, not {arguments_digest[:12]}…",
        )


async def public_keys(connection: Connection) -> PublicKeys:
    """The keys that `verify` needs."""
    return await Api(connection).ask("gate.keys", b"{}", PublicKeys)


async def token_for(
    connection: Connection,
    request: GateRequest,
    *,
    agent: str,
    waiting: Callable[[], object] | None = None,
) -> str:
    """A token for `request` of `agent`'s attempt, however long a person takes and coordinators are
    away.

    `waiting` is called every few seconds while a person is waited for. Raises GateRejected if the
    person says no, Halted for a tool that the manifest does not allow, Superseded if the attempt
    is not the one that the task waits for, and GateRefused if the task does not want the call.
    """
    asking, api = request, Api(connection, agent=agent)
    while True:
        try_s = asking.wait_s + ANSWER_S
        once = partial(api.ask, "gate.request", asking, GateReply, try_s=try_s)
        try:
            reply = await patiently(
                once, f"gate of {request.tool} in {request.task}", pause=connection.wire.again.pause
            )
        except Refused as refused:
            raise _told_apart(refused) from refused
        if reply.status == "granted":
            return reply.token
        if reply.status == "rejected":
            raise GateRejected(reply.reason, by=reply.by)
        if waiting is not None:
            waiting()
        asking = request.model_copy(update={"wait_s": WAIT_MAX_S})


async def redeem(
    connection: Connection, token: str, *, tool: str, arguments_digest: str, agent: str = ""
) -> GateRedeemed:
    """Use the token up, right before acting. Raises GateRefused if it is not good, or not any more.
    `agent`: the one whose worker does it; a downstream has none.

    An answer that got lost does no harm: this very use is known again.
    """
    using = GateRedeem(token=token, tool=tool, arguments_digest=arguments_digest, use=uuid4())
    once = partial(Api(connection, agent=agent).ask, "gate.redeem", using, GateRedeemed)
    try:
        return await patiently(
            once, f"redeeming a gate token of {tool}", pause=connection.wire.again.pause
        )
    except Refused as refused:
        raise _told_apart(refused) from refused


async def pass_gate(
    connection: Connection,
    request: GateRequest,
    *,
    agent: str,
    waiting: Callable[[], object] | None = None,
) -> str:
    """Get a token and use it up; again while it grows old, or the task moves on, in between.

    Returns the token, for the record. Raises as `token_for` and `redeem` do.
    """
    tool, digest = request.tool, request.arguments_digest
    while True:
        token = await token_for(connection, request, agent=agent, waiting=waiting)
        try:
            await redeem(connection, token, tool=tool, arguments_digest=digest, agent=agent)
            return token
        except GateRefused as refused:
            if refused.kind not in (STALE, EXPIRED):
                raise


def _gate(claims: dict[str, Any]) -> Gate:
    return Gate(
        UUID(claims["sub"]),
        claims["step"],
        claims["phase"],
        claims["agent"],
        claims["attempt"],
        claims["epoch"],
        claims["ver"],
        claims["tool"],
        claims["args"],
        UUID(claims["inv"]),
        UUID(claims["jti"]),
        claims["iat"],
        claims["exp"],
    )


def _told_apart(refused: Refused) -> HeadwayError:
    """A coordinator's refusal as the error that says what to do about it."""
    if refused.kind == SUPERSEDED:
        return Superseded(refused.reason)
    if refused.kind == TOOL_NOT_ALLOWED:
        return Halted(refused.reason, kind="ToolNotAllowed")
    if refused.kind in CODES:
        return GateRefused(refused.kind, refused.reason)
    return refused


def _moment(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
