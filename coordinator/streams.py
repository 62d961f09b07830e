"""The streams and consumers, as JetStream's API wants them. Pure: configurations as values.

PostgreSQL can rebuild commands and events, so on a single node they are not flushed message by
message (`persist_mode: async`); submissions exist nowhere else until they are committed, so they
are. On a cluster all have `replicas` copies, and the server's `sync_interval` decides.
"""

from __future__ import annotations

from typing import Any

from headway.agents import subjects
from headway.agents.pull import ACK_WAIT_S

NANOSECONDS = 1_000_000_000
DAY_NS = 86_400 * NANOSECONDS

DUPLICATE_WINDOW_NS = 120 * NANOSECONDS  # of submissions only; ids are dropped after it
SHORT_WINDOW_NS = NANOSECONDS  # where no message has an id
FEED_MAX_AGE_NS = DAY_NS
FEED_MAX_BYTES = 67_108_864
DEAD_MAX_AGE_NS = 30 * DAY_NS
DEAD_MAX_BYTES = 268_435_456
DEAD_PER_SENDER_MAX = 1_000  # letters of one agent: so it cannot push out those of many others
DEAD_MESSAGE_MAX_BYTES = 262_144  # of a letter, whose body is cut before that
PAYLOADS_MAX_AGE_NS = 30 * DAY_NS
ACK_PENDING_MAX = 50_000
PULLS_WAITING_MAX = 4_096

_QUEUE = {"retention": "workqueue", "discard": "new", "max_age": 0}
_LOG = {"retention": "limits", "discard": "old"}
_NEVER_DELETED = {"deny_delete": True, "deny_purge": True}  # by nobody; an ack takes a message out

HINTS = ("submitted", "progressed")  # news for whoever listens at the moment, kept nowhere
# What the feed keeps: how tasks turned out.
KEPT_NEWS = (
    "succeeded",
    "compensating",
    "compensated",
    "parked",
    "failed_to_compensate",
)
ADVISORIES = (
    "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.>",
    "$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.>",
)


def streams(replicas: int) -> tuple[dict[str, Any], ...]:
    """The configurations of all streams."""
    rebuilt: dict[str, Any] = {"persist_mode": "async"} if replicas == 1 else {}
    return tuple(
        {"storage": "file", "num_replicas": replicas, **configuration}
        for configuration in (
            _tasks(),
            _commands() | rebuilt,
            _events() | rebuilt,
            _feed() | rebuilt,
            _dead(),
            _payloads(),
        )
    )


def _tasks() -> dict[str, Any]:
    return {
        "name": subjects.TASKS_STREAM,
        "subjects": [subjects.TASKS],
        "duplicate_window": DUPLICATE_WINDOW_NS,
        **_QUEUE,
        **_NEVER_DELETED,
    }


def _commands() -> dict[str, Any]:
    return {
        "name": subjects.COMMANDS_STREAM,
        "subjects": [subjects.COMMANDS],
        "max_msgs_per_subject": 1,
        "discard_new_per_subject": True,
        "duplicate_window": SHORT_WINDOW_NS,
        **_QUEUE,
    }


def _events() -> dict[str, Any]:
    return {
        "name": subjects.EVENTS_STREAM,
        "subjects": [subjects.EVENTS],
        "subject_transform": {"src": subjects.EVENTS, "dest": subjects.EVENTS_STORED},
        "duplicate_window": SHORT_WINDOW_NS,
        **_QUEUE,
        **_NEVER_DELETED,
    }


def _feed() -> dict[str, Any]:
    return {
        "name": subjects.FEED_STREAM,
        "subjects": [subjects.feed_subject("*", "*", kind) for kind in KEPT_NEWS],
        "max_age": FEED_MAX_AGE_NS,
        "max_bytes": FEED_MAX_BYTES,
        "duplicate_window": SHORT_WINDOW_NS,
        **_LOG,
    }


def _dead() -> dict[str, Any]:
    return {
        "name": subjects.DEAD_STREAM,
        "subjects": [subjects.DEAD, *ADVISORIES],
        "max_age": DEAD_MAX_AGE_NS,
        "max_bytes": DEAD_MAX_BYTES,
        "max_msgs_per_subject": DEAD_PER_SENDER_MAX,
        "max_msg_size": DEAD_MESSAGE_MAX_BYTES,
        "duplicate_window": SHORT_WINDOW_NS,
        **_LOG,
        **_NEVER_DELETED,
    }


def _payloads() -> dict[str, Any]:
    """Written once: nothing in it is ever replaced, nor deleted before its time."""
    return {
        "name": subjects.PAYLOADS_STREAM,
        "subjects": [subjects.PAYLOADS],
        "retention": "limits",
        "discard": "new",
        "discard_new_per_subject": True,
        "max_msgs_per_subject": 1,
        **_NEVER_DELETED,
        "allow_direct": True,
        "max_age": PAYLOADS_MAX_AGE_NS,
        "duplicate_window": SHORT_WINDOW_NS,
    }


def shared_consumer(stream: str) -> dict[str, Any]:
    """The durable that all coordinators pull from."""
    return {"stream_name": stream, "config": _consumer(subjects.COORDINATOR)}


def agent_consumer(agent: str) -> dict[str, Any]:
    """The durable that all instances of one agent pull from."""
    config = _consumer(agent) | {"filter_subject": subjects.commands_of_agent(agent)}
    return {"stream_name": subjects.COMMANDS_STREAM, "config": config}


def _consumer(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "durable_name": name,
        "ack_policy": "explicit",
        "ack_wait": round(ACK_WAIT_S * NANOSECONDS),
        "max_deliver": -1,
        "max_ack_pending": ACK_PENDING_MAX,
        "max_waiting": PULLS_WAITING_MAX,
        "deliver_policy": "all",
        "replay_policy": "instant",
    }
