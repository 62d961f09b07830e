"""Statements of tokens, and of the secret that commands are signed with."""

from __future__ import annotations

import orjson
from headway.coordinator.errors import StoreRefused
from simulation import store_values as v
from simulation.store_tables import ActRow, Tables, TokenRow, reads, writes
from simulation.store_values import Row, moment

DIGEST_BYTES = 32
ROLES = frozenset({"view", "submit", "operate"})


@reads
def tokens(tables: Tables) -> list[Row]:
    found = sorted(tables.tokens, key=lambda token: (token.made_at, token.id))
    return [_row(token) for token in found]


@writes
def make_token(
    tables: Tables, token: str, name: str, role: str, digest: bytes, at: int, by: str
) -> list[Row]:
    v.text(token, name, role, by)
    v.bigint(at)
    if role not in ROLES or len(digest) != DIGEST_BYTES:
        raise StoreRefused("CheckViolationError: a token violates a check constraint")
    if _good(tables, name) is not None:
        return []
    if any(each.id == token for each in tables.tokens):
        raise StoreRefused("UniqueViolationError: tokens_pkey")
    tables.tokens.append(TokenRow(token, name, role, digest, at, None))
    tables.acts.append(_act(at, "token-created", by, tables.tokens[-1]))
    return [Row(made_at=moment(at))]


@writes
def revoke_token(tables: Tables, name: str, at: int, by: str) -> list[Row]:
    v.text(name, by)
    v.bigint(at)
    token = _good(tables, name)
    if token is None:
        return []
    token.revoked_at = at
    tables.acts.append(_act(at, "token-revoked", by, token))
    return [_row(token)]


@reads
def command_secret(tables: Tables) -> list[Row]:
    return [Row(secret=tables.command_secret)] if tables.command_secret else []


@writes
def keep_command_secret(tables: Tables, secret: bytes, at: int) -> list[Row]:
    v.bigint(at)
    if len(secret) != DIGEST_BYTES:
        raise StoreRefused("CheckViolationError: command_secrets_secret_check")
    tables.command_secret = tables.command_secret or secret
    return []


def _good(tables: Tables, name: str) -> TokenRow | None:
    good = (each for each in tables.tokens if each.name == name and each.revoked_at is None)
    return next(good, None)


def _act(at: int, kind: str, by: str, token: TokenRow) -> ActRow:
    return ActRow(at, kind, by, token.name, data=orjson.dumps({"id": token.id, "role": token.role}))


def _row(token: TokenRow) -> Row:
    return Row(
        id=token.id,
        name=token.name,
        role=token.role,
        digest=token.digest,
        made_at=moment(token.made_at),
        revoked_at=moment(token.revoked_at),
    )
