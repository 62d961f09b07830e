"""Pull consumers: who asked for messages, what was given out, and what is to be given again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simulation.loop import Timeline
from simulation.network import Message
from simulation.streams import NANOSECONDS, Consumer, Pending, Pull, Stored, Stream

ACK, NAK, WPI, TERM, NEXT = b"+ACK", b"-NAK", b"+WPI", b"+TERM", b"+NXT"

Deliver = Callable[[int, str, Message], bool]
Advise = Callable[[str, str, str, dict[str, Any]], None]


class Consumers:
    """Serves all consumers of all streams."""

    def __init__(self, timeline: Timeline, deliver: Deliver, advise: Advise) -> None:
        """`deliver` says whether anybody listens at an inbox."""
        self._timeline = timeline
        self._deliver = deliver
        self._advise = advise
        self._numbers = 0

    def pull(
        self, stream: Stream, consumer: Consumer, line: int, inbox: str, request: dict[str, Any]
    ) -> None:
        """A request for messages."""
        now = self._timeline.now
        self._numbers += 1
        most = consumer.config.get("max_waiting", 512)
        if len(consumer.pulls) >= most:
            self._say(line, inbox, "409 Exceeded MaxWaiting")
            return
        expires_s = request.get("expires", 0) / NANOSECONDS
        heartbeat_s = request.get("idle_heartbeat", 0) / NANOSECONDS
        waiting = Pull(
            line,
            inbox,
            request.get("batch", 1),
            self._numbers,
            now + expires_s if expires_s else float("inf"),
            heartbeat_s,
            now,
        )
        consumer.pulls.append(waiting)
        if expires_s:
            self._timeline.at(waiting.expires_at, self._expire, stream, consumer, waiting)
        if heartbeat_s:
            self._timeline.after(heartbeat_s, self._beat, consumer, waiting)
        self.serve(stream, consumer)
        if request.get("no_wait") and waiting in consumer.pulls:
            consumer.pulls.remove(waiting)
            self._say(line, inbox, "404 No Messages")

    def forget_line(self, consumer: Consumer, line: int) -> None:
        """A connection is gone, and with it what it had asked for."""
        kept = [pull for pull in consumer.pulls if pull.line != line]
        consumer.pulls.clear()
        consumer.pulls.extend(kept)

    def end(self, consumer: Consumer) -> None:
        """A consumer is deleted: whoever waits is told so."""
        consumer.timer_at = float("inf")
        while consumer.pulls:
            pull = consumer.pulls.popleft()
            self._say(pull.line, pull.inbox, "409 Consumer Deleted")

    def serve(self, stream: Stream, consumer: Consumer) -> None:
        """Give out what there is to those who asked, the oldest request first."""
        now = self._timeline.now
        while consumer.pulls and consumer.paused_until <= now:
            most = consumer.config.get("max_ack_pending", 1_000)
            if most > 0 and len(consumer.pending) >= most and not consumer.again:
                break
            stored = self._next(stream, consumer)
            if stored is None:
                break
            self._give(stream, consumer, stored)
        self.arm(stream, consumer)

    def on_ack(
        self, stream: Stream, consumer: Consumer, seq: int, consumer_seq: int, body: bytes
    ) -> None:
        """What a worker answered to a delivery."""
        if consumer_seq > consumer.consumer_seq:
            return
        pending = consumer.pending.get(seq)
        if body.startswith(WPI):
            if pending is not None:
                pending.deadline = self._timeline.now + consumer.ack_wait_s
        elif body.startswith(NAK):
            if pending is not None:
                self._again(consumer, seq)
        elif body.startswith(TERM):
            self._done(stream, consumer, seq)
            about = {"stream_seq": seq, "reason": body[6:].decode("utf-8", "replace")}
            self._advise("MSG_TERMINATED", stream.name, consumer.name, about)
        else:
            self._done(stream, consumer, seq)
        self.serve(stream, consumer)

    def arm(self, stream: Stream, consumer: Consumer) -> None:
        """Look again when the first answer is overdue."""
        if not consumer.pending:
            return
        first = min(each.deadline for each in consumer.pending.values())
        if first < consumer.timer_at:
            consumer.timer_at = first
            self._timeline.at(first, self._overdue, stream, consumer, first)

    def _overdue(self, stream: Stream, consumer: Consumer, at: float) -> None:
        if consumer.timer_at != at or stream.consumers.get(consumer.name) is not consumer:
            return
        consumer.timer_at = float("inf")
        now = self._timeline.now
        late = [seq for seq, each in consumer.pending.items() if each.deadline <= now]
        for seq in sorted(late):
            self._again(consumer, seq)
        self.serve(stream, consumer)

    def _again(self, consumer: Consumer, seq: int) -> None:
        consumer.counts[seq] = consumer.pending.pop(seq).delivered
        consumer.again.append(seq)

    def _done(self, stream: Stream, consumer: Consumer, seq: int) -> None:
        consumer.pending.pop(seq, None)
        consumer.counts.pop(seq, None)
        if seq in consumer.again:
            consumer.again.remove(seq)
        if stream.is_queue:
            stream.remove(seq)

    def _next(self, stream: Stream, consumer: Consumer) -> Stored | None:
        while consumer.again:
            seq = consumer.again.popleft()
            stored = stream.messages.get(seq)
            if stored is not None:
                return stored
            consumer.counts.pop(seq, None)
        for stored in stream.undelivered(consumer):
            consumer.stream_seq = stored.seq
            return stored
        return None

    def _give(self, stream: Stream, consumer: Consumer, stored: Stored) -> None:
        now = self._timeline.now
        delivered = consumer.counts.pop(stored.seq, 0) + 1
        most = consumer.config.get("max_deliver", -1)
        if 0 < most < delivered:
            about = {"stream_seq": stored.seq, "deliveries": delivered}
            self._advise("MAX_DELIVERIES", stream.name, consumer.name, about)
            return
        consumer.consumer_seq += 1
        reply = (
            f"$JS.ACK.{stream.name}.{consumer.name}.{delivered}.{stored.seq}."
            f"{consumer.consumer_seq}.{stored.at_ns}.0"
        )
        message = Message(stored.subject, reply, stored.headers, stored.body)
        while consumer.pulls:
            pull = consumer.pulls[0]
            if self._deliver(pull.line, pull.inbox, message):
                pull.left -= 1
                pull.said_at = now
                consumer.pulls.rotate(-1)  # the next one is another's
                if not pull.left:
                    consumer.pulls.remove(pull)
                break
            consumer.pulls.popleft()
        else:  # nobody listens any more
            consumer.consumer_seq -= 1
            consumer.counts[stored.seq] = delivered - 1
            consumer.again.appendleft(stored.seq)
            return
        consumer.pending[stored.seq] = Pending(
            now + consumer.ack_wait_s, delivered, consumer.consumer_seq
        )

    def _expire(self, stream: Stream, consumer: Consumer, pull: Pull) -> None:
        if pull in consumer.pulls:
            consumer.pulls.remove(pull)
            lines = f"Nats-Pending-Messages: {pull.left}\r\nNats-Pending-Bytes: 0\r\n"
            self._say(pull.line, pull.inbox, "408 Request Timeout", lines)

    def _beat(self, consumer: Consumer, pull: Pull) -> None:
        if pull not in consumer.pulls:
            return
        now = self._timeline.now
        if now - pull.said_at >= pull.heartbeat_s * 0.999:
            pull.said_at = now
            self._say(pull.line, pull.inbox, "100 Idle Heartbeat")
        self._timeline.at(pull.said_at + pull.heartbeat_s, self._beat, consumer, pull)

    def _say(self, line: int, inbox: str, status: str, lines: str = "") -> None:
        headers = f"NATS/1.0 {status}\r\n{lines}\r\n".encode()
        self._deliver(line, inbox, Message(inbox, "", headers, b""))
