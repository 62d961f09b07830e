"""An agent on nats-py alone, written against agents/asyncapi.yaml and without the SDK.

This is how much the agent contract takes: the connection, and one instance of an agent that pulls,
checks, claims, works and reports. It imports nothing of ours.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import logging
import os
import re
import signal
import socket
import time
import uuid
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import nats.errors
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from headway.demo.languages.bare_attempt import Attempt, Handlers
from headway.demo.languages.bare_wire import BareWire
from headway.demo.languages.bare_words import complaint, is_fresh, read
from nats.aio.client import Client
from nats.aio.msg import Msg

SLOTS = 64
PULL_S = 5.0
PING_EVERY_S = 5  # two without an answer: the line is dead
KEEP_EVERY_S = 1.5
PRESENCE_EVERY_S = 1.0
PACED_FOR_S = 3.5
KEY_AGAIN_S = 10.0
GRACE_S = 5.0
REMEMBERED_MAX = 16_384
LETTER_MAX_BYTES = 65_536
NANOSECONDS = 1_000_000_000

_log = logging.getLogger("headway.demo.bare")


class BareAgent:
    """One instance of an agent. `attempts` are by the subjects of their commands."""

    def __init__(self, wire: BareWire, handlers: Handlers) -> None:
        self._wire = wire
        self._handlers = handlers
        self._attempts: dict[str, Attempt] = {}
        self._begun: dict[str, None] = {}  # ids, oldest first
        self._key = b""
        self._key_asked_at = 0.0
        self._paced_until = 0.0
        self._stopping = False
        self._freed = asyncio.Event()

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set; then finish, or hand back what takes longer than GRACE_S.

        Whatever keeps it from going on is raised, so that its process ends and another one comes.
        """
        await self._listen()
        work = [
            asyncio.create_task(each)
            for each in (self._pull(), self._keep_for_ever(), self._say_for_ever())
        ]
        stopped = asyncio.create_task(stop.wait())
        ended, _ = await asyncio.wait([stopped, *work], return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        for each in ended:
            each.result()
        self._stopping = True
        await self._say_presence()
        work[0].cancel()
        if running := [each.work for each in self._attempts.values()]:
            await asyncio.wait(running, timeout=GRACE_S)
        await asyncio.gather(*(each.hand_back() for each in self._attempts.values()))
        for task in work:
            task.cancel()
        await asyncio.wait(work)

    async def _listen(self) -> None:
        nc, agent = self._wire.nc, self._wire.agent
        roll = f"hw.alive.{agent}.held"
        await nc.subscribe(roll, queue=self._wire.worker, cb=self._on_roll_call)
        await nc.subscribe(f"hw.stop.{agent}.*.*", cb=self._on_stop)
        await nc.subscribe(f"hw.paced.{agent}", cb=self._on_paced)
        await nc.subscribe("hw.coordinators", cb=self._wire.on_coordinator)

    async def _pull(self) -> None:
        """Ask for as many commands as can be begun, again and again."""
        await self._learn_key()
        nc, subject = self._wire.nc, f"$JS.API.CONSUMER.MSG.NEXT.HW_COMMANDS.{self._wire.agent}"
        inbox = nc.new_inbox()
        subscription = await nc.subscribe(inbox)
        while not self._stopping:  # nats-py may take a cancellation for the end of the connection
            left = SLOTS - len(self._attempts)
            if left <= 0:
                self._freed.clear()
                await self._freed.wait()
                continue
            request = {"batch": left, "expires": round(PULL_S * NANOSECONDS)}
            try:
                await nc.publish(subject, json.dumps(request).encode(), reply=inbox)
                while left > 0:
                    msg = await subscription.next_msg(timeout=PULL_S + 1.0)
                    if not msg.reply:
                        break  # the end of the request, or there is no such consumer yet
                    left -= 1
                    await self._take(msg)
            except (nats.errors.Error, OSError):
                if nc.is_closed:
                    raise
                await asyncio.sleep(0.2)
            else:
                await asyncio.sleep(0.2 if (msg.headers or {}).get("Status") == "503" else 0)

    async def _take(self, msg: Msg) -> None:
        current = self._attempts.get(msg.subject)
        if current is not None and current.msg.data == msg.data:
            await current.adopt(msg)
            return
        wrong = complaint(self._key, msg.subject, msg.data)
        asked_s = time.monotonic() - self._key_asked_at
        if wrong.startswith("the signature") and asked_s > KEY_AGAIN_S:
            await self._learn_key()
            wrong = complaint(self._key, msg.subject, msg.data)
        if wrong:
            await self._refuse(msg, wrong)
            return
        try:
            action, command = read(msg.subject, msg.data)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            await self._refuse(msg, f"{type(error).__name__}: {error}")
            return
        self._begin(msg, action, command)

    def _begin(self, msg: Msg, action: str, command: dict[str, Any]) -> None:
        known = command["id"] in self._begun
        self._begun[command["id"]] = None
        if len(self._begun) > REMEMBERED_MAX:
            del self._begun[next(iter(self._begun))]
        first = is_fresh(command, msg) and not known
        paced = bool(command.get("paced")) or time.monotonic() < self._paced_until
        attempt = Attempt(self._wire, self._handlers, msg, action, command)
        self._attempts[msg.subject] = attempt
        attempt.start(claim=not first or paced, first=first)
        attempt.work.add_done_callback(lambda _: self._end(attempt))

    def _end(self, attempt: Attempt) -> None:
        if self._attempts.get(attempt.msg.subject) is attempt:
            del self._attempts[attempt.msg.subject]
        self._freed.set()

    async def _refuse(self, msg: Msg, reason: str) -> None:
        """Take a message out for good, and keep it as a dead letter if that can be had."""
        letter = {
            "stream": "HW_COMMANDS",
            "subject": msg.subject,
            "reason": reason,
            "at": datetime.now(UTC).isoformat(),
            "size": len(msg.data),
            "body_base64": base64.b64encode(msg.data[:LETTER_MAX_BYTES]).decode(),
        }
        subject = f"hw.dead.HW_COMMANDS.{self._wire.agent}"
        try:
            await self._wire.js.publish(subject, json.dumps(letter).encode(), timeout=2.0)
        except (nats.errors.Error, OSError) as error:
            _log.warning("%s: no dead letter could be stored: %s", msg.subject, error)
        await self._wire.nc.publish(msg.reply, f"+TERM {' '.join(reason.split())}".encode())

    async def _learn_key(self) -> None:
        told = await self._wire.ask("key", {})
        self._key_asked_at = time.monotonic()
        self._key = base64.b64decode(told["key"])
        if told.get("paced"):
            self._paced_until = time.monotonic() + PACED_FOR_S

    async def _on_roll_call(self, msg: Msg) -> None:
        if msg.reply:
            held = {"name": self._wire.worker, "held": list(self._attempts)}
            await msg.respond(json.dumps(held).encode())

    async def _on_stop(self, msg: Msg) -> None:
        if re.fullmatch(rb"[0-9]{1,9}", msg.data) is None or "Nats-Stream" in (msg.headers or {}):
            return
        *_, task, step = msg.subject.split(".")
        for each in self._attempts.values():
            if (each.command["task"], each.command["step"]) == (task, step):
                each.stop(int(msg.data))

    async def _on_paced(self, msg: Msg) -> None:
        if not msg.data and not msg.headers:
            self._paced_until = time.monotonic() + PACED_FOR_S

    async def _keep_for_ever(self) -> None:
        """Tell the server again and again what is still worked on."""
        while True:
            await asyncio.sleep(KEEP_EVERY_S)
            for each in list(self._attempts.values()):
                with suppress(nats.errors.Error, OSError):
                    await each.keep()

    async def _say_for_ever(self) -> None:
        while True:
            await self._say_presence()
            await asyncio.sleep(PRESENCE_EVERY_S)

    async def _say_presence(self) -> None:
        presence = {
            "agent": self._wire.agent,
            "worker": self._wire.worker,
            "actions": sorted(self._handlers),
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "busy": len(self._attempts),
            "slots": SLOTS,
            "stopping": self._stopping,
        }
        await self._wire.say(f"hw.presence.{self._wire.agent}", presence)


async def serve(agent: str, handlers: Handlers) -> None:
    """Work as `agent` until SIGTERM or SIGINT, with HEADWAY_NATS_URL and HEADWAY_CREDS."""
    stop = asyncio.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(each, stop.set)
    url, creds = os.environ["HEADWAY_NATS_URL"], os.environ.get("HEADWAY_CREDS", "")
    nc = Client()
    options: dict[str, Any] = {"servers": url.split(","), "reconnect_time_wait": 0.1}
    if creds:
        options |= {"inbox_prefix": f"_INBOX_{agent}", "signature_cb": _show_key(nc, agent, creds)}
    await nc.connect(
        name=f"agent {agent}",
        max_reconnect_attempts=-1,
        ping_interval=PING_EVERY_S,
        max_outstanding_pings=2,
        error_cb=_complain,
        **options,
    )
    worker = f"{urlsplit(url).hostname}-{os.getpid()}-{uuid.uuid4().hex[:6]}".replace(".", "-")
    await BareAgent(BareWire(nc, agent, worker), handlers).run(stop)
    await nc.flush()
    await nc.close()


def _show_key(nc: Client, agent: str, path: str) -> Any:
    """What signs a server's nonce. nats-py does it by itself where the package `nkeys` is."""
    text = Path(path).read_text()
    named = re.search(r"^# agent: (\S+)$", text, re.MULTILINE)
    seed = re.search(r"^SU[A-Z2-7]+$", text, re.MULTILINE)
    if named is None or named[1] != agent or seed is None:
        raise ValueError(f"{path} has no credentials of agent {agent}")
    raw = base64.b32decode(seed[0] + "=" * (-len(seed[0]) % 8))
    key = Ed25519PrivateKey.from_private_bytes(raw[2:34])
    public = bytes([20 << 3]) + key.public_key().public_bytes_raw()
    checked = public + binascii.crc_hqx(public, 0).to_bytes(2, "little")
    nc._public_nkey = base64.b32encode(checked).rstrip(b"=").decode()
    return lambda nonce: base64.b64encode(key.sign(nonce.encode()))


async def _complain(error: Exception) -> None:
    _log.debug("%s", error)
