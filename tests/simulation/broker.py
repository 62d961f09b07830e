"""A nats-server with JetStream, as a machine that is told what arrives and when.

Core NATS delivers once to each plain subscription and to one of each queue group; a request that
nobody listens to is answered 503. JetStream's management API is a table of operations.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from datetime import UTC, datetime
from random import Random
from typing import Any

import orjson
from headway.agents import subjects
from simulation.consumers import Consumers
from simulation.faults import Chance
from simulation.loop import Timeline
from simulation.network import Line, Message
from simulation.streams import Consumer, Refused, Stored, Stream
from simulation.subjects_index import Listeners, matches

EPOCH_S = 1_800_000_000  # the server's wall clock at the beginning
NO_RESPONDERS = b"NATS/1.0 503\r\n\r\n"
NOT_FOUND = b"NATS/1.0 404 Message Not Found\r\n\r\n"
SUBJECTS_PER_PAGE = 100_000
API = "$JS.API."
_TRACED = re.compile(rb"Nats-Trace-Dest: ([^\r]+)\r\nNats-Trace-Only: true\r\n")
ACKS = "$JS.ACK."


class Broker:
    """The server. It stops and starts again; what it keeps on disk outlives that."""

    def __init__(self, timeline: Timeline, chance: Chance, told: Callable[..., None]) -> None:
        self.up = True
        self.lines: dict[int, Line] = {}
        self.streams: dict[str, Stream] = {}
        self._listeners = Listeners()
        self._timeline = timeline
        self._rng: Random = chance.rng("broker")
        self._told = told
        self.on_acked: Callable[[str, Stored], None] = _unheard
        self.on_stored: Callable[[str, Stored], None] = _unheard
        self.mistaken: dict[str, None] = {}  # subjects whose message an ack of an older one took
        self._lines_made = 0
        self._starts = 1
        self._created = 0
        self.consumers = Consumers(timeline, self._deliver_pulled, self._advise)
        self._api: dict[str, Callable[[list[str], dict[str, Any]], dict[str, Any]]] = {
            "STREAM.CREATE": self._stream_create,
            "STREAM.UPDATE": self._stream_update,
            "STREAM.INFO": self._stream_info,
            "STREAM.NAMES": self._stream_names,
            "STREAM.DELETE": self._stream_delete,
            "STREAM.PURGE": self._stream_purge,
            "STREAM.MSG.GET": self._message_get,
            "STREAM.MSG.DELETE": self._message_delete,
            "CONSUMER.CREATE": self._consumer_create,
            "CONSUMER.DURABLE.CREATE": self._consumer_create,
            "CONSUMER.INFO": self._consumer_info,
            "CONSUMER.NAMES": self._consumer_names,
            "CONSUMER.DELETE": self._consumer_delete,
            "CONSUMER.PAUSE": self._consumer_pause,
        }

    # Connections

    @property
    def identity(self) -> str:
        """As a server names itself, each time it starts."""
        return f"SERVER{self._starts}"

    def next_line(self) -> int:
        self._lines_made += 1
        return self._lines_made

    def accept(self, line: Line) -> None:
        self.lines[line.number] = line

    def gone(self, line: Line) -> None:
        """The server notices that a connection is broken."""
        if self.lines.pop(line.number, None) is None:
            return
        for sid, (subject, _) in line.subscriptions.items():
            self._listeners.remove(line, sid, subject)
        line.subscriptions.clear()
        for stream in self.streams.values():
            for consumer in stream.consumers.values():
                self.consumers.forget_line(consumer, line.number)

    def listens(self, subject: str) -> bool:
        """Whether anybody does."""
        return bool(self._listeners.of(subject))

    def forget_all(self) -> None:
        """At the end of a run."""
        self.lines.clear()
        self._listeners = Listeners()

    def kill(self, rng: Random) -> None:
        """SIGKILL: what was not flushed is lost, and clients notice soon."""
        self.up = False
        for stream in self.streams.values():
            if rng.random() < 0.2:
                stream.flush()
            lost = stream.killed()
            if lost:
                self._told("lost", stream.name, lost)
        for line in list(self.lines.values()):
            line.cut(0.0, rng.random() * 0.05)

    def start(self) -> None:
        self.up = True
        self._starts += 1
        for stream in self.streams.values():
            for consumer in stream.consumers.values():
                self.consumers.arm(stream, consumer)

    def wipe(self) -> list[bytes]:
        """JetStream's store is deleted; returns what nobody else has: submissions."""
        tasks = self.streams.get(subjects.TASKS_STREAM)
        lost = [] if tasks is None else [stored.body for stored in tasks.messages.values()]
        for stream in self.streams.values():
            for consumer in stream.consumers.values():
                consumer.timer_at = float("inf")
        self.streams.clear()
        return lost

    def flush(self, rng: Random) -> None:
        """Some streams reach the disk."""
        for stream in self.streams.values():
            if rng.random() < 0.5:
                stream.flush()

    def arrive(self, line: Line, verb: str, frame: Any) -> None:
        if not self.up or line.number not in self.lines:
            return
        match verb:
            case "PUB":
                self.publish(frame, line)
            case "SUB":
                sid, subject, queue = frame
                line.subscriptions[sid] = subject, queue
                self._listeners.add(line, sid, subject, queue)
            case "UNSUB":
                subscribed = line.subscriptions.pop(frame, None)
                if subscribed is not None:
                    self._listeners.remove(line, frame, subscribed[0])
            case "PING":
                line.pong()

    # Messages

    def publish(self, message: Message, line: Line | None = None) -> None:
        """One message from a client, or of the server's own."""
        subject = message.subject
        if subject[0] == "$":
            if subject.startswith(API):
                self._answer_api(message, line)
                return
            if subject.startswith(ACKS):
                self._on_ack(subject, message.body)
                return
        traced = _TRACED.search(message.headers)
        if traced is not None:
            self._trace(subject, traced[1].decode())
            return
        heard = self._route(message)
        stored = self._store(message)
        if message.reply and not heard and not stored:
            self._route(Message(message.reply, "", NO_RESPONDERS, b""))

    def _route(self, message: Message, *, receipt: bool = False) -> bool:
        groups: dict[str, list[tuple[Line, int]]] = {}
        heard = False
        for line, sid, queue in self._listeners.of(message.subject):
            heard = True
            if queue:
                groups.setdefault(queue, []).append((line, sid))
            else:
                line.push(sid, message, receipt=receipt)
        for members in groups.values():
            line, sid = self._rng.choice(members)
            line.push(sid, message, receipt=receipt)
        return heard

    def _trace(self, subject: str, destination: str) -> None:
        """Tell who would get a message, which nobody gets."""
        given = [{"type": "eg", "queue": queue} for *_, queue in self._listeners.of(subject)]
        told = {"server": {"id": self.identity}, "events": [{"type": "in"}, *given]}
        self._route(Message(destination, "", b"", orjson.dumps(told)))

    def _store(self, message: Message) -> bool:
        for stream in self.streams.values():
            if stream.takes(message.subject):
                break
        else:
            return False
        answer: dict[str, Any] = {"stream": stream.name}
        try:
            seq, duplicate = stream.store(
                message.subject, message.headers, message.body, self._timeline.now, self.now_ns()
            )
            answer["seq"] = seq
            if duplicate:
                answer["duplicate"] = True
            else:
                self._told("stored", stream.name, seq, stream.messages[seq].subject)
                self.on_stored(stream.name, stream.messages[seq])
        except Refused as refused:
            self._told("not stored", stream.name, message.subject, str(refused))
            answer = {"error": refused.problem, **answer, "seq": 0}
        else:
            for consumer in stream.consumers.values():
                self.consumers.serve(stream, consumer)
        if message.reply:
            self._route(Message(message.reply, "", b"", orjson.dumps(answer)), receipt=True)
        return True

    def _deliver_pulled(self, line: int, inbox: str, message: Message) -> bool:
        """To whoever pulled; false if nobody listens there any more."""
        if line not in self.lines:
            return False
        listening = self._listeners.of(inbox)
        for subscribed, sid, _ in listening:
            subscribed.push(sid, message._replace(subject=message.subject))
        return bool(listening)

    def _advise(self, kind: str, stream: str, consumer: str, about: dict[str, Any]) -> None:
        subject = f"$JS.EVENT.ADVISORY.CONSUMER.{kind}.{stream}.{consumer}"
        self._timeline.after(
            0.0, self.publish, Message(subject, "", b"", orjson.dumps({"type": kind, **about}))
        )

    def _on_ack(self, subject: str, body: bytes) -> None:
        words = subject.split(".")
        if len(words) != 9:
            return
        stream = self.streams.get(words[2])
        consumer = None if stream is None else stream.consumers.get(words[3])
        if stream is None or consumer is None:
            return
        self._told("ack", words[2], words[3], int(words[5]), body[:4].decode("ascii", "replace"))
        stored = stream.messages.get(int(words[5]))
        # A server that was killed gives sequences again: an old ack may take out a new message.
        same = stored is not None and words[7] == str(stored.at_ns)
        if same and stored is not None and body in (b"", b"+ACK"):
            self.on_acked(stream.name, stored)
        elif stored is not None and body in (b"", b"+ACK"):
            self.mistaken[stored.subject] = None
        self.consumers.on_ack(stream, consumer, int(words[5]), int(words[6]), body)

    # The management API

    def now_ns(self) -> int:
        return EPOCH_S * 1_000_000_000 + int(self._timeline.now * 1e9)

    def moment(self, at_ns: int) -> str:
        seconds, rest = divmod(at_ns, 1_000_000_000)
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09d}Z"

    def _answer_api(self, message: Message, line: Line | None) -> None:
        words = message.subject[len(API) :].split(".")
        request = orjson.loads(message.body) if message.body[:1] == b"{" else {}
        if words[:3] == ["CONSUMER", "MSG", "NEXT"]:
            self._pull(words[3], words[4], request, message, line)
            return
        if words[:2] == ["DIRECT", "GET"] and len(words) > 3:
            self._direct_get(words[2], ".".join(words[3:]), message.reply)
            return
        for length in (3, 2):
            operation = self._api.get(".".join(words[:length]))
            if operation is not None:
                break
        else:
            if message.reply:
                self._route(Message(message.reply, "", NO_RESPONDERS, b""))
            return
        try:
            answer = operation(words[length:], request)
        except Refused as refused:
            answer = {"error": refused.problem}
        if message.reply:
            self._route(Message(message.reply, "", b"", orjson.dumps(answer)))

    def _pull(
        self, name: str, consumer: str, request: dict[str, Any], message: Message, line: Line | None
    ) -> None:
        stream = self.streams.get(name)
        found = None if stream is None else stream.consumers.get(consumer)
        if stream is None or found is None or line is None:
            self._route(Message(message.reply, "", NO_RESPONDERS, b""))
            return
        self.consumers.pull(stream, found, line.number, message.reply, request)

    def _direct_get(self, name: str, subject: str, reply: str) -> None:
        """The newest message on a subject, as it is."""
        stream = self.streams.get(name)
        if stream is None or not stream.config.get("allow_direct"):
            self._route(Message(reply, "", NO_RESPONDERS, b""))
            return
        stored = stream.last_of(subject)
        if stored is None:
            self._route(Message(reply, "", NOT_FOUND, b""))
            return
        head = f"NATS/1.0\r\nNats-Subject: {stored.subject}\r\nNats-Sequence: {stored.seq}\r\n\r\n"
        self._route(Message(reply, "", head.encode(), stored.body))

    def _found(self, name: str) -> Stream:
        stream = self.streams.get(name)
        if stream is None:
            raise Refused(404, 10059, "stream not found")
        return stream

    def _consumer(self, words: list[str]) -> tuple[Stream, Consumer]:
        stream = self._found(words[0])
        consumer = stream.consumers.get(words[1])
        if consumer is None:
            raise Refused(404, 10014, "consumer not found")
        return stream, consumer

    def _stream_create(self, words: list[str], request: dict[str, Any]) -> dict[str, Any]:
        stream = self.streams.get(words[0])
        if stream is not None and stream.config != request:
            raise Refused(400, 10058, "stream name already in use with a different configuration")
        if stream is None:
            self._created += 1
            created = self.moment(self.now_ns() + self._created)
            stream = self.streams[words[0]] = Stream(words[0], request, created)
            self._told("stream made", words[0])
        return self._info(stream)

    def _stream_update(self, words: list[str], request: dict[str, Any]) -> dict[str, Any]:
        stream = self._found(words[0])
        stream.config = request
        return self._info(stream)

    def _stream_info(self, words: list[str], request: dict[str, Any]) -> dict[str, Any]:
        stream = self._found(words[0])
        answer = self._info(stream)
        wanted = request.get("subjects_filter")
        if wanted:
            counts = stream.counts(wanted)
            offset = request.get("offset", 0)
            page = list(counts.items())[offset : offset + SUBJECTS_PER_PAGE]
            answer["state"]["subjects"] = dict(page)
            answer |= {"total": len(counts), "offset": offset, "limit": SUBJECTS_PER_PAGE}
        return answer

    def _info(self, stream: Stream) -> dict[str, Any]:
        return {
            "type": "io.nats.jetstream.api.v1.stream_info_response",
            "config": stream.config,
            "created": stream.created,
            "state": {
                "messages": len(stream.messages),
                "bytes": sum(len(stored.body) for stored in stream.messages.values()),
                "first_seq": stream.first_seq,
                "last_seq": stream.last_seq,
                "num_subjects": len(stream.by_subject),
                "consumer_count": len(stream.consumers),
            },
            "ts": self.moment(self.now_ns()),
        }

    def _stream_names(self, _words: list[str], _request: dict[str, Any]) -> dict[str, Any]:
        names = sorted(self.streams)
        return {"streams": names, "total": len(names), "offset": 0, "limit": 1024}

    def _stream_delete(self, words: list[str], _request: dict[str, Any]) -> dict[str, Any]:
        stream = self.streams.pop(self._found(words[0]).name)
        for consumer in stream.consumers.values():
            self.consumers.end(consumer)
        return {"success": True}

    def _stream_purge(self, words: list[str], request: dict[str, Any]) -> dict[str, Any]:
        stream, wanted = self._found(words[0]), request.get("filter", ">")
        seqs = [each.seq for each in stream.messages.values() if matches(wanted, each.subject)]
        for seq in seqs:
            stream.remove(seq)
        return {"success": True, "purged": len(seqs)}

    def _message_get(self, words: list[str], request: dict[str, Any]) -> dict[str, Any]:
        stream = self._found(words[0])
        if "last_by_subj" in request:
            stored = stream.last_of(request["last_by_subj"])
        elif "next_by_subj" in request:
            stored = stream.next_of(request["next_by_subj"], request.get("seq", 0))
        else:
            stored = stream.messages.get(request.get("seq", 0))
        if stored is None:
            raise Refused(404, 10037, "no message found")
        message = {
            "subject": stored.subject,
            "seq": stored.seq,
            "data": base64.b64encode(stored.body).decode(),
            "time": self.moment(stored.at_ns),
        }
        if stored.headers:
            message["hdrs"] = base64.b64encode(stored.headers).decode()
        return {"message": message}

    def _message_delete(self, words: list[str], request: dict[str, Any]) -> dict[str, Any]:
        stream = self._found(words[0])
        if request["seq"] > stream.last_seq:
            raise Refused(500, 10057, "no message found")
        if not stream.remove(request["seq"]):
            raise Refused(404, 10043, f"sequence {request['seq']} not found")
        self._told("deleted", stream.name, request["seq"])
        return {"success": True}

    def _consumer_create(self, words: list[str], request: dict[str, Any]) -> dict[str, Any]:
        stream, config = self._found(words[0]), request["config"]
        name = config.get("durable_name") or config.get("name") or words[1]
        consumer = stream.consumers.get(name)
        if consumer is None:
            if request.get("action") == "update":
                raise Refused(404, 10149, "consumer does not exist")
            consumer = stream.consumers[name] = Consumer(name, config, stream.first_seq)
            self._told("consumer made", stream.name, name)
        elif config != consumer.config:
            consumer.config = config
        until = config.get("pause_until")
        if until:
            consumer.paused_until = self._seconds(until)
        self.consumers.serve(stream, consumer)
        return self._described(stream, consumer)

    def _consumer_info(self, words: list[str], _request: dict[str, Any]) -> dict[str, Any]:
        return self._described(*self._consumer(words))

    def _described(self, stream: Stream, consumer: Consumer) -> dict[str, Any]:
        now = self._timeline.now
        return {
            "stream_name": stream.name,
            "name": consumer.name,
            "config": consumer.config,
            "delivered": {
                "consumer_seq": consumer.consumer_seq,
                "stream_seq": consumer.stream_seq,
            },
            "ack_floor": {"consumer_seq": 0, "stream_seq": consumer.floor},
            "num_ack_pending": len(consumer.pending),
            "num_redelivered": sum(1 for each in consumer.pending.values() if each.delivered > 1),
            "num_waiting": len(consumer.pulls),
            "num_pending": sum(1 for _ in stream.undelivered(consumer)),
            "paused": consumer.paused_until > now,
            "pause_remaining": max(0, int((consumer.paused_until - now) * 1e9)),
        }

    def _consumer_names(self, words: list[str], _request: dict[str, Any]) -> dict[str, Any]:
        names = sorted(self._found(words[0]).consumers)
        return {"consumers": names, "total": len(names), "offset": 0, "limit": 1024}

    def _consumer_delete(self, words: list[str], _request: dict[str, Any]) -> dict[str, Any]:
        stream, consumer = self._consumer(words)
        del stream.consumers[consumer.name]
        self.consumers.end(consumer)
        return {"success": True}

    def _consumer_pause(self, words: list[str], request: dict[str, Any]) -> dict[str, Any]:
        stream, consumer = self._consumer(words)
        until = request.get("pause_until", "")
        consumer.paused_until = self._seconds(until) if until else 0.0
        if until:
            self._timeline.at(consumer.paused_until, self.consumers.serve, stream, consumer)
        self.consumers.serve(stream, consumer)
        paused = consumer.paused_until > self._timeline.now
        return {"paused": paused, "pause_until": until}

    def _seconds(self, moment: str) -> float:
        at = datetime.fromisoformat(moment.replace("Z", "+00:00"))
        return at.timestamp() - EPOCH_S


def _unheard(_stream: str, _stored: Stored) -> None:
    return
