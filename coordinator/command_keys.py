"""The keys that commands are signed with: one an agent, all derived from one secret in PostgreSQL.

The first coordinator makes the secret. Always holds: of two that make one at the same time both use
the one that was stored. Whoever can read the database can sign for every agent; an agent, only for
itself.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Callable

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from headway.agents.command_key import CommandKey
from headway.agents.command_signing import KEY_BYTES, signed
from headway.agents.subjects import TOKEN
from headway.agents.views import Nothing
from headway.coordinator.caller import Caller
from headway.coordinator.errors import Refusal
from headway.coordinator.serving import Serve, typed_by
from headway.coordinator.store import Store

KEPT_MAX = 4_096  # keys that are kept derived


class CommandKeys:
    """Signs commands, once `open` has read the secret, and gives agents their keys."""

    def __init__(self, store: Store, clock: Callable[[], int]) -> None:
        self._store = store
        self._clock = clock
        self._secret = b""
        self._keys: dict[str, bytes] = {}
        self._is_paced: Callable[[str], bool] = lambda _agent: False

    async def open(self) -> None:
        """Read the secret that all coordinators of this database share, made if there is none."""
        rows = await self._store.fetch("command_secret")
        if not rows:
            made = secrets.token_bytes(KEY_BYTES)
            await self._store.fetch("keep_command_secret", made, self._clock())
            rows = await self._store.fetch("command_secret")
        self._secret = rows[0]["secret"]

    def agent_operations(self, is_paced: Callable[[str], bool]) -> dict[str, Serve]:
        """`is_paced` tells whether something limits an agent."""
        self._is_paced = is_paced
        return {"key": typed_by(Nothing, CommandKey, self.give)}

    async def give(self, _request: Nothing, caller: Caller) -> CommandKey:
        """The key of whoever asks."""
        if TOKEN.fullmatch(caller.agent) is None:
            raise Refusal(f"there is no agent {caller.agent!r}; its name cannot be one", 404)
        key = base64.b64encode(self.key(caller.agent)).decode()
        return CommandKey(key=key, paced=self._is_paced(caller.agent))

    def sign(self, agent: str, subject: str, body: bytes) -> bytes:
        """A command for an agent as it is published on `subject`."""
        return signed(self.key(agent), subject, body)

    def key(self, agent: str) -> bytes:
        """The key of an agent: the same in every coordinator."""
        key = self._keys.get(agent)
        if key is None:
            if len(self._keys) >= KEPT_MAX:
                self._keys.clear()
            key = self._keys[agent] = derived(self._secret, agent)
        return key

    def key_for(self, purpose: bytes) -> bytes:
        """A key for something else than commands: the same in every coordinator."""
        return _derived(self._secret, purpose)


def derived(secret: bytes, agent: str) -> bytes:
    """The key of `agent`."""
    return _derived(secret, b"headway command key\0" + agent.encode())


def _derived(secret: bytes, purpose: bytes) -> bytes:
    """HKDF-SHA256."""
    if not secret:
        raise AssertionError("the secret that commands are signed with was not read yet")
    return HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=purpose).derive(secret)
