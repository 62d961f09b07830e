"""JetStream's streams and durable consumers, as nats-server keeps them; time is an argument.

Modelled are the parts of it that Headway relies on: limits a subject, work queues, duplicate
windows, a subject transform, explicit acks with redelivery, pauses, and what a killed server has
lost of a stream that it had not flushed. Always holds: a sequence is given out once, but for what
a kill took back.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from simulation.subjects_index import matches

NANOSECONDS = 1_000_000_000
KEPT_MAX = 20_000  # messages of a stream that nothing takes out

_TRANSFORM = re.compile(r"\{\{(partition|wildcard)\(([0-9, ]+)\)\}\}")


class Stored(NamedTuple):
    seq: int
    subject: str
    headers: bytes
    body: bytes
    at_ns: int


class Refused(Exception):
    """JetStream's answer to what cannot be; `code` is HTTP's, `err_code` JetStream's own."""

    def __init__(self, code: int, err_code: int, text: str) -> None:
        super().__init__(text)
        self.problem = {"code": code, "err_code": err_code, "description": text}


@dataclass(slots=True)
class Pull:
    """A request for messages that waits at a consumer."""

    line: int  # of which connection
    inbox: str
    left: int
    number: int
    expires_at: float
    heartbeat_s: float
    said_at: float


@dataclass(slots=True)
class Pending:
    """A message that was delivered and not answered."""

    deadline: float
    delivered: int
    consumer_seq: int


class Consumer:
    def __init__(self, name: str, config: dict[str, Any], first_seq: int) -> None:
        self.name = name
        self.config = config
        self.pulls: deque[Pull] = deque()
        self.pending: dict[int, Pending] = {}
        self.counts: dict[int, int] = {}  # deliveries of a message that waits for the next one
        self.again: deque[int] = deque()  # sequences to be delivered again
        self.stream_seq = first_seq - 1  # delivered up to here
        self.consumer_seq = 0
        self.paused_until = 0.0
        self.timer_at = float("inf")

    @property
    def ack_wait_s(self) -> float:
        return float(self.config.get("ack_wait", 30 * NANOSECONDS)) / NANOSECONDS

    @property
    def floor(self) -> int:
        """Up to this sequence of the stream it is through."""
        waiting = [*self.pending, *self.again]
        return min(waiting) - 1 if waiting else self.stream_seq

    def wants(self, subject: str) -> bool:
        filtered = self.config.get("filter_subject")
        return not filtered or matches(filtered, subject)


@dataclass(slots=True)
class Flushed:
    """What of a stream is on disk for sure."""

    messages: dict[int, Stored] = field(default_factory=dict)
    last_seq: int = 0
    consumers: dict[str, tuple[int, int]] = field(default_factory=dict)


class Stream:
    def __init__(self, name: str, config: dict[str, Any], created: str) -> None:
        self.name = name
        self.config = config
        self.created = created
        self.messages: dict[int, Stored] = {}
        self.by_subject: dict[str, dict[int, None]] = {}
        self.last_seq = 0
        self.consumers: dict[str, Consumer] = {}
        self.ids: dict[bytes, tuple[int, float]] = {}
        self.flushed = Flushed()

    @property
    def first_seq(self) -> int:
        return next(iter(self.messages), self.last_seq + 1)

    @property
    def is_queue(self) -> bool:
        return bool(self.config.get("retention") == "workqueue")

    @property
    def is_flushed_late(self) -> bool:
        return bool(self.config.get("persist_mode") == "async")

    def takes(self, subject: str) -> bool:
        return any(matches(pattern, subject) for pattern in self.config.get("subjects", ()))

    def store(
        self, subject: str, headers: bytes, body: bytes, now: float, at_ns: int
    ) -> tuple[int, bool]:
        """The sequence, and whether it is a duplicate; Refused if its subject is full."""
        subject = self._transformed(subject)
        message_id = _header(headers, b"nats-msg-id") if headers else b""
        if message_id:
            known = self.ids.get(message_id)
            window = self.config.get("duplicate_window", 120 * NANOSECONDS) / NANOSECONDS
            if known is not None and now - known[1] < window:
                return known[0], True
        most = self.config.get("max_msgs_per_subject", -1)
        if most > 0 and len(self.by_subject.get(subject, ())) >= most:
            if self.config.get("discard_new_per_subject"):
                raise Refused(400, 10077, "maximum messages per subject exceeded")
            self.remove(next(iter(self.by_subject[subject])))
        self.last_seq += 1
        self._put(Stored(self.last_seq, subject, headers, body, at_ns))
        if message_id:
            self.ids[message_id] = self.last_seq, now
        if not self.is_queue and len(self.messages) > KEPT_MAX:
            self.remove(self.first_seq)
        if not self.is_flushed_late:
            self.flushed.messages[self.last_seq] = self.messages[self.last_seq]
            self.flushed.last_seq = self.last_seq
        return self.last_seq, False

    def remove(self, seq: int) -> bool:
        stored = self.messages.pop(seq, None)
        if stored is None:
            return False
        seqs = self.by_subject[stored.subject]
        del seqs[seq]
        if not seqs:
            del self.by_subject[stored.subject]
        return True

    def last_of(self, subject: str) -> Stored | None:
        """The newest message on a subject, which may have wildcards."""
        if "*" not in subject and ">" not in subject:
            seqs = self.by_subject.get(subject)
            return self.messages[next(reversed(seqs))] if seqs else None
        found = [s for s in self.messages.values() if matches(subject, s.subject)]
        return found[-1] if found else None

    def next_of(self, subject: str, start: int) -> Stored | None:
        """The first message from a sequence on whose subject matches."""
        for seq, stored in self.messages.items():
            if seq >= start and matches(subject, stored.subject):
                return stored
        return None

    def counts(self, wanted: str) -> dict[str, int]:
        """How many messages are on each of the subjects that match."""
        return {s: len(seqs) for s, seqs in sorted(self.by_subject.items()) if matches(wanted, s)}

    def flush(self) -> None:
        """All that it has is on disk now."""
        self.flushed = Flushed(
            dict(self.messages),
            self.last_seq,
            {c.name: (c.stream_seq, c.consumer_seq) for c in self.consumers.values()},
        )

    def killed(self) -> int:
        """As it is found after a kill: what was not flushed is gone, what was taken out since is
        there again. Returns how many messages were lost."""
        flushed = self.flushed
        lost = sum(1 for seq in self.messages if seq not in flushed.messages)
        self.messages, self.by_subject, self.ids = {}, {}, {}
        for stored in sorted(flushed.messages.values()):
            self._put(stored)
        self.last_seq = flushed.last_seq
        for consumer in self.consumers.values():
            at, consumer_seq = flushed.consumers.get(consumer.name, (0, 0))
            consumer.pulls.clear()
            consumer.pending.clear()
            consumer.again.clear()
            consumer.timer_at = float("inf")
            consumer.stream_seq, consumer.consumer_seq = 0, consumer_seq
            for seq, stored in self.messages.items():
                if seq <= at and consumer.wants(stored.subject):
                    consumer.again.append(seq)
                    consumer.counts.setdefault(seq, 1)
            consumer.counts = {s: n for s, n in consumer.counts.items() if s in self.messages}
            consumer.stream_seq = min(at, self.last_seq)
        return lost

    def undelivered(self, consumer: Consumer) -> Iterator[Stored]:
        for seq in range(max(consumer.stream_seq + 1, self.first_seq), self.last_seq + 1):
            stored = self.messages.get(seq)
            if stored is not None and consumer.wants(stored.subject):
                yield stored

    def _put(self, stored: Stored) -> None:
        self.messages[stored.seq] = stored
        self.by_subject.setdefault(stored.subject, {})[stored.seq] = None

    def _transformed(self, subject: str) -> str:
        transform = self.config.get("subject_transform")
        if not transform or not matches(transform["src"], subject):
            return subject
        words, wanted = subject.split("."), transform["src"].split(".")
        wild = [word for word, want in zip(words, wanted, strict=False) if want == "*"]

        def filled(found: re.Match[str]) -> str:
            numbers = [int(number) for number in found[2].split(",")]
            if found[1] == "wildcard":
                return wild[numbers[0] - 1]
            key = "".join(wild[number - 1] for number in numbers[1:])
            return str(_fnv1a(key) % numbers[0])

        return _TRANSFORM.sub(filled, transform["dest"])


def _fnv1a(text: str) -> int:
    value = 0x811C9DC5
    for byte in text.encode():
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value


def _header(block: bytes, name: bytes) -> bytes:
    for line in block.split(b"\r\n")[1:]:
        key, colon, value = line.partition(b":")
        if colon and key.strip().lower() == name:
            return value.strip()
    return b""
