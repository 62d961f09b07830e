"""The data directory of `headway up`: what is in it, and who may use it.

    headway.json      marks it as ours; nothing is ever deleted from a directory without it
    lock              held by the one process that uses the directory; contains its pid
    secrets.json      passwords and the console's token, made once; only the owner may read them
    grants.json       public keys of agents that have credentials of their own
    ports.json        ports, chosen once, so that clients find a restarted server
    connections.json  there while everything runs: URLs for clients
    nats/ postgres/   each server's own
    logs/             what the servers and coordinators say

Always holds: whoever has a `DataDirectory` holds its lock, which ends with the process.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import pwd
import secrets
import shutil
import socket
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from headway.agents.errors import HeadwayError
from headway.coordinator.connections import FILE_NAME as CONNECTIONS
from headway.coordinator.connections import Connections
from headway.coordinator.http_socket import CannotListen, listen, listen_near
from headway.coordinator.logfile import LogFile
from headway.coordinator.ports import free_port, is_free

FORMAT = 1
MARKER = "headway.json"
LOCK = "lock"
SECRETS = "secrets.json"
PORTS = "ports.json"
GRANTS = "grants.json"
DISCARDED = "discarded"
CONTENTS = (SECRETS, PORTS, GRANTS, CONNECTIONS, "nats", "postgres", "postgres-unfinished", "logs")
SECRET_BYTES = 24
LOOPBACK = "127.0.0.1"
FIRST_HTTP_PORT = 7_480
MOVED = (
    "something else has taken port %d: %s is at %d from now on, and whoever was given the old URL "
    "needs the new one"
)

_log = logging.getLogger("headway.coordinator.datadir")


class DataDirectoryError(HeadwayError):
    """A data directory that cannot be used; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Secrets:
    nats_password: str  # people's
    postgres_password: str
    agents_password: str
    coordinators_password: str
    console_token: str


@dataclass(frozen=True, slots=True)
class Ports:
    nats: int
    nats_monitoring: int
    postgres: int


class DataDirectory:
    """A data directory whose lock this process holds, until `release`."""

    def __init__(self, path: Path) -> None:
        """Take `path`, making it if need be.

        Raises DataDirectoryError when another process uses it, when it belongs to another user,
        or when it holds something else.
        """
        self.path = path.absolute()
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            _check_owner(self.path)
            _check_marker(self.path)
            self._lock = _take_lock(self.path)
            self._write(MARKER, {"format": FORMAT})
        except OSError as error:
            raise DataDirectoryError(f"cannot keep data in {self.path}: {error}") from error

    @property
    def nats(self) -> Path:
        return self.path / "nats"

    @property
    def postgres(self) -> Path:
        return self.path / "postgres"

    def log(self, name: str) -> LogFile:
        """The log of the server or coordinator `name`."""
        return LogFile(self.path / "logs" / f"{name}.log")

    def secrets(self) -> Secrets:
        """The passwords of this directory's servers, made when first asked for."""
        stored = self._read(SECRETS)
        made = {each.name: secrets.token_hex(SECRET_BYTES) for each in fields(Secrets)}
        made["console_token"] = f"hw_console_{made['console_token']}"
        if stored.keys() != made.keys():
            stored = {**made, **stored}
            self._write(SECRETS, stored)
        return Secrets(**stored)

    def grants(self) -> list[dict[str, str]]:
        """The keys that agents were let in with when this was asked last, for a server that starts
        before the database can be asked."""
        return list(self._read(GRANTS).get("keys", []))

    def keep_grants(self, keys: list[dict[str, str]]) -> None:
        self._write(GRANTS, {"keys": keys})

    def ports(self) -> Ports:
        """The ports of this directory's servers, which must not be running now.

        A port that something else has taken meanwhile is replaced for good, with a warning.
        """
        stored = self._read(PORTS)
        chosen: dict[str, int] = {}
        for field in fields(Ports):
            taken = frozenset(chosen.values())
            chosen[field.name] = _port(field.name, stored.get(field.name), taken)
        if stored | chosen != stored:
            self._write(PORTS, stored | chosen)
        return Ports(**chosen)

    def listen(self, address: str) -> socket.socket:
        """A socket for HTTP, at `host:port` or, if that is "", at this directory's own port on
        loopback, which is the first free one from FIRST_HTTP_PORT on.

        CannotListen if it cannot be there.
        """
        if address:
            return _listen_as_asked(address)
        stored = self._read(PORTS)
        kept = stored.get("http", FIRST_HTTP_PORT)
        listening = listen_near(LOOPBACK, kept)
        port = listening.getsockname()[1]
        if port != stored.get("http"):
            if "http" in stored:
                _log.warning(MOVED, kept, "HTTP", port)
            self._write(PORTS, stored | {"http": port})
        return listening

    def publish(self, running: Connections) -> None:
        """Tell clients on this machine how to reach the servers."""
        self._write(CONNECTIONS, asdict(running))

    def wipe(self) -> None:
        """Delete everything that is ours but the marker and the lock, and nothing else.

        Set aside first: a deletion that is interrupted leaves no half of a server's data.
        """
        discarded = self.path / DISCARDED
        shutil.rmtree(discarded, ignore_errors=True)
        discarded.mkdir(mode=0o700)
        for name in CONTENTS:
            if (self.path / name).exists():
                (self.path / name).rename(discarded / name)
        shutil.rmtree(discarded)

    def release(self) -> None:
        """Give the directory up: nothing runs in it any more."""
        (self.path / CONNECTIONS).unlink(missing_ok=True)
        os.close(self._lock)

    def _read(self, name: str) -> dict[str, Any]:
        path = self.path / name
        if not path.exists():
            return {}
        try:
            return dict(json.loads(path.read_text()))
        except ValueError as error:
            raise DataDirectoryError(
                f"{path} is damaged ({error}): restore it, or start anew with --reset, "
                "which deletes all tasks"
            ) from error

    def _write(self, name: str, content: dict[str, Any]) -> None:
        """Replace a file at once or not at all, on disk when this returns."""
        unfinished = self.path / f"{name}.unfinished"
        unfinished.unlink(missing_ok=True)
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(content, file, indent=2)
            file.flush()
            os.fsync(descriptor)
        unfinished.replace(self.path / name)


def _listen_as_asked(address: str) -> socket.socket:
    try:
        return listen(address)
    except CannotListen as error:
        if not error.is_taken:
            raise
        raise CannotListen(f"{error}, or leave --http away to get a free one") from error


def existing_data_directory(path: Path) -> DataDirectory | None:
    """Take the data directory at `path`; None when there is nothing at all.

    Raises DataDirectoryError when what is there was not made by Headway, or as DataDirectory does.
    """
    if not path.exists():
        return None
    if not (path / MARKER).is_file():
        raise DataDirectoryError(f"{path} is not a data directory of Headway: it is left alone")
    return DataDirectory(path)


def _check_owner(path: Path) -> None:
    owner = path.stat().st_uid
    if owner != os.geteuid():
        raise DataDirectoryError(
            f"{path} belongs to {_user(owner)}, and this is {_user(os.geteuid())}: "
            "run as the owner, or choose another data directory"
        )


def _user(uid: int) -> str:
    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user {uid}"


def _check_marker(path: Path) -> None:
    if not (path / MARKER).is_file():
        if any(entry.name != LOCK for entry in path.iterdir()):
            raise DataDirectoryError(
                f"{path} holds something else than Headway's data: choose an empty or new directory"
            )
        return
    marker = json.loads((path / MARKER).read_text())
    if marker["format"] != FORMAT:
        raise DataDirectoryError(
            f"{path} is of format {marker['format']}, and this version of Headway knows {FORMAT}: "
            "use the version that wrote it"
        )


def _take_lock(path: Path) -> int:
    """A descriptor that holds the lock until it is closed; child processes do not inherit it."""
    descriptor = os.open(path / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(descriptor, 32, 0).decode() or "unknown"
        os.close(descriptor)
        raise DataDirectoryError(
            f"{path} is in use by process {holder}: stop that one first, or choose another "
            "data directory"
        ) from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, str(os.getpid()).encode(), 0)
    return descriptor


def _port(server: str, kept: int | None, taken: frozenset[int]) -> int:
    if kept is not None and kept not in taken and is_free(kept):
        return kept
    new = free_port(taken)
    if kept is not None:
        _log.warning(MOVED, kept, server, new)
    return new
