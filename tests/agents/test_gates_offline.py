"""Gate tokens as a downstream checks them: with the public keys, and no network."""

from __future__ import annotations

import base64
from hashlib import sha256
from uuid import UUID

import jwt
import orjson
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from headway.agents.errors import InvalidInput
from headway.agents.gates import (
    EXPIRED,
    FORGED,
    OTHER_ARGUMENTS,
    OTHER_TOOL,
    GateRefused,
    PublicKey,
    PublicKeys,
    arguments_digest,
    verify,
)

TASK = UUID("01920000-0000-7000-8000-000000000001")
ISSUED_AT = 1_800_000_000  # 2027-01-15T08:00:00Z
DIGEST = arguments_digest(["A-17"], {"amount": 120})
CLAIMS = {
    "iss": "headway",
    "sub": str(TASK),
    "step": "refund",
    "phase": "action",
    "attempt": 2,
    "agent": "clerk",
    "epoch": 1,
    "ver": 9,
    "tool": "pay",
    "args": DIGEST,
    "inv": "5f0c6f3c-0000-5000-8000-000000000002",
    "jti": "5f0c6f3c-0000-4000-8000-000000000003",
    "iat": ISSUED_AT,
    "exp": ISSUED_AT + 30,
}


class Signer:
    """A key of its own, and the set that a downstream has of it."""

    def __init__(self, kid: str = "one") -> None:
        self.private = Ed25519PrivateKey.generate()
        self.kid = kid
        x = base64.urlsafe_b64encode(self.private.public_key().public_bytes_raw())
        self.keys = PublicKeys(keys=[PublicKey(kid=kid, x=x.rstrip(b"=").decode())])

    def token(self, kid: str | None = None, **changes: object) -> str:
        headers = {"kid": kid or self.kid}
        return jwt.encode({**CLAIMS, **changes}, self.private, algorithm="EdDSA", headers=headers)


@pytest.fixture(scope="module")
def ours() -> Signer:
    return Signer()


def refusal(token: str, keys: PublicKeys, **changes) -> tuple[str, str]:
    """Kind and text of the refusal."""
    asked = {"tool": "pay", "arguments_digest": DIGEST, "now": ISSUED_AT + 1, **changes}
    with pytest.raises(GateRefused) as refused:
        verify(token, keys, **asked)
    return refused.value.kind, refused.value.reason


def test_a_good_token_tells_what_it_is_for(ours):
    gate = verify(
        ours.token(), ours.keys, tool="pay", arguments_digest=DIGEST, now=ISSUED_AT + 29.9
    )
    assert (gate.task, gate.step, gate.phase) == (TASK, "refund", "action")
    assert (gate.attempt, gate.epoch, gate.version) == (2, 1, 9)
    assert gate.invocation == UUID(CLAIMS["inv"])
    assert (gate.issued_at, gate.expires_at) == (ISSUED_AT, ISSUED_AT + 30)


def test_keys_kept_as_json_are_as_good(ours):
    kept = ours.keys.model_dump_json()
    assert orjson.loads(kept)["keys"][0]["crv"] == "Ed25519"
    keys = PublicKeys.model_validate_json(kept)
    assert verify(ours.token(), keys, tool="pay", arguments_digest=DIGEST, now=ISSUED_AT)


def test_a_late_token_is_refused(ours):
    assert refusal(ours.token(), ours.keys, now=ISSUED_AT + 30) == (
        EXPIRED,
        "the gate token expired at 2027-01-15T08:00:30Z",
    )


def test_without_a_time_given_it_is_the_time_of_this_machine(ours):
    ages_ago = ours.token(exp=1_700_000_000)
    assert refusal(ages_ago, ours.keys, now=None) == (
        EXPIRED,
        "the gate token expired at 2023-11-14T22:13:20Z",
    )


def test_a_token_signed_by_somebody_else_is_refused_whatever_key_it_names(ours):
    other = Signer("two")
    assert refusal(other.token(), ours.keys) == (
        FORGED,
        "the gate token is signed with a key that is not ours",
    )
    assert refusal(other.token(kid="one"), ours.keys) == (
        FORGED,
        "the gate token is forged or damaged",
    )


def test_a_token_without_a_signature_is_refused(ours):
    unsigned = jwt.encode(CLAIMS, None, algorithm="none", headers={"kid": "one"})
    assert refusal(unsigned, ours.keys) == (FORGED, "the gate token is forged or damaged")


def test_a_token_signed_with_our_public_key_as_a_password_is_refused(ours):
    public = ours.private.public_key().public_bytes_raw()
    symmetric = jwt.encode(CLAIMS, public, algorithm="HS256", headers={"kid": "one"})
    assert refusal(symmetric, ours.keys) == (FORGED, "the gate token is forged or damaged")


@pytest.mark.parametrize("part", [0, 1, 2], ids=["header", "claims", "signature"])
def test_a_tampered_token_is_refused(ours, part):
    parts = ours.token().split(".")
    middle = len(parts[part]) // 2
    swapped = "A" if parts[part][middle] != "A" else "B"
    parts[part] = parts[part][:middle] + swapped + parts[part][middle + 1 :]
    kind, text = refusal(".".join(parts), ours.keys)
    assert kind == FORGED
    assert text in {
        "the gate token is forged or damaged",
        "the gate token is signed with a key that is not ours",
    }


def test_claims_that_were_swapped_in_are_refused(ours):
    head, _, signature = ours.token().split(".")
    dearer = orjson.dumps({**CLAIMS, "args": arguments_digest(["A-17"], {"amount": 9_999})})
    claims = base64.urlsafe_b64encode(dearer).rstrip(b"=").decode()
    assert refusal(f"{head}.{claims}.{signature}", ours.keys) == (
        FORGED,
        "the gate token is forged or damaged",
    )


@pytest.mark.parametrize("text", ["", "abc", "a.b.c", "....", "\x00", "ä" * 50, "e30.e30."])
def test_what_is_no_token_at_all_is_refused(ours, text):
    kind, _ = refusal(text, ours.keys)
    assert kind == FORGED


@pytest.mark.parametrize("claim", ["iss", "sub", "jti", "exp", "args", "ver"])
def test_a_token_of_another_kind_is_refused_though_the_key_is_ours(ours, claim):
    claims = {name: value for name, value in CLAIMS.items() if name != claim}
    token = jwt.encode(claims, ours.private, algorithm="EdDSA", headers={"kid": "one"})
    assert refusal(token, ours.keys) == (FORGED, "the gate token is forged or damaged")


def test_a_token_for_another_tool_is_refused(ours):
    assert refusal(ours.token(), ours.keys, tool="mail") == (
        OTHER_TOOL,
        "the gate token is for tool 'pay', not for 'mail'",
    )


def test_a_token_for_other_arguments_is_refused(ours):
    other = arguments_digest(["A-17"], {"amount": 121})
    assert refusal(ours.token(), ours.keys, arguments_digest=other) == (
        OTHER_ARGUMENTS,
        "the gate token is for a call of 'pay' with other arguments: digest "
        f"{DIGEST[:12]}…, not {other[:12]}…",
    )


def test_neither_the_order_of_names_nor_the_kind_of_sequence_changes_a_digest():
    assert arguments_digest((1,), {"a": {"x": 1, "y": 2}, "b": 2}) == arguments_digest(
        [1], {"b": 2, "a": {"y": 2, "x": 1}}
    )
    assert arguments_digest([], {}) == sha256(b"[[],{}]").hexdigest()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([float("nan")], "arguments: a number is not finite"),
        ([2**64], "arguments: Integer exceeds 64-bit range"),
        ([object()], "arguments: Type is not JSON serializable: object"),
    ],
)
def test_what_is_not_plain_json_has_no_digest(arguments, complaint):
    with pytest.raises(InvalidInput) as refused:
        arguments_digest(arguments, {})
    assert str(refused.value) == complaint
