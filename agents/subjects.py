"""Every subject, stream and durable name of the system: built and parsed here, nowhere else.

An agent's identity is the subject token that the server enforces, never a field of a payload.
"""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

PREFIX = "hw"
PARTITIONS = 32

TASKS_STREAM = "HW_TASKS"
COMMANDS_STREAM = "HW_COMMANDS"
EVENTS_STREAM = "HW_EVENTS"
FEED_STREAM = "HW_FEED"
DEAD_STREAM = "HW_DEAD"
PAYLOADS_STREAM = "HW_PAYLOADS"

COORDINATOR = "coordinator"  # durable consumer shared by all coordinators

TASKS = f"{PREFIX}.tasks.*"
COMMANDS = f"{PREFIX}.commands.*.*.*.*"
EVENTS = f"{PREFIX}.events.*.*"
EVENTS_STORED = (
    f"{PREFIX}.events.{{{{partition({PARTITIONS},2)}}}}.{{{{wildcard(1)}}}}.{{{{wildcard(2)}}}}"
)
FEED = f"{PREFIX}.feed.*.*.*"
DEAD = f"{PREFIX}.dead.>"
PAYLOADS = f"{PREFIX}.payloads.>"
PEOPLES_PAYLOADS = f"{PREFIX}.payloads.people"
API = f"{PREFIX}.api"
AGENTS = f"{PREFIX}.agents"
PRESENCE = f"{PREFIX}.presence.*"
PEERS = f"{PREFIX}.peers.held"  # as a `roll_subject`, for coordinators
ASK_AGAIN = f"{PREFIX}.coordinators"  # core NATS: a coordinator came, was lost, or can work again

COORDINATORS_INBOX = "_COORDINATORS"  # what their inboxes begin with

TOKEN = re.compile(r"[A-Za-z0-9_-]{1,64}")


class SubjectError(ValueError):
    """A subject or a token of one that is not of the expected form."""


def token(value: str) -> str:
    """`value` if it can stand as one subject token, else SubjectError."""
    if TOKEN.fullmatch(value) is None:
        raise SubjectError(
            f"{value!r} cannot be a subject token: use 1 to 64 of A-Z a-z 0-9 _ and -"
        )
    return value


class CommandSubject(NamedTuple):
    agent: str
    action: str
    task: str
    step: str


class EventSubject(NamedTuple):
    agent: str
    task: str


def task_subject(saga: str) -> str:
    return f"{PREFIX}.tasks.{saga}"


def parse_task_subject(subject: str) -> str:
    """The saga named by a submission's subject."""
    parts = subject.split(".")
    if len(parts) != 3 or not subject.startswith(f"{PREFIX}.tasks."):
        raise SubjectError(f"not a task subject: {subject!r}")
    return parts[2]


def command_subject(agent: str, action: str, task: str, step: str) -> str:
    return f"{PREFIX}.commands.{agent}.{action}.{task}.{step}"


def commands_of_agent(agent: str) -> str:
    return f"{PREFIX}.commands.{agent}.>"


def parse_command_subject(subject: str) -> CommandSubject:
    parts = subject.split(".")
    if len(parts) != 6 or parts[1] != "commands":
        raise SubjectError(f"not a command subject: {subject!r}")
    return CommandSubject(*parts[2:])


def event_subject(agent: str, task: str) -> str:
    """Where an agent publishes; the stream stores it with a partition token put in."""
    return f"{PREFIX}.events.{agent}.{task}"


def parse_stored_event_subject(subject: str) -> EventSubject:
    """Parse `hw.events.<partition>.<agent>.<task>`, the form in which the stream stores it."""
    parts = subject.split(".")
    if len(parts) != 5 or parts[1] != "events":
        raise SubjectError(f"not a stored event subject: {subject!r}")
    return EventSubject(parts[3], parts[4])


def stored_events_of_task(task: str) -> str:
    return f"{PREFIX}.events.*.*.{task}"


def feed_subject(saga: str, task: str, kind: str) -> str:
    return f"{PREFIX}.feed.{saga}.{task}.{kind}"


def feed_of_task(task: str) -> str:
    return f"{PREFIX}.feed.*.{task}.*"


def dead_subject(origin: str, agent: str = "") -> str:
    """Where a message of stream `origin` goes that `agent`, or a coordinator, refused."""
    return f"{PREFIX}.dead.{origin}.{agent}" if agent else f"{PREFIX}.dead.{origin}"


def payloads_by(agent: str) -> str:
    """The space of the payloads that an agent writes."""
    return f"{PREFIX}.payloads.by.{agent}"


def payloads_to(agent: str) -> str:
    """The space of the payloads that coordinators write for an agent."""
    return f"{PREFIX}.payloads.to.{agent}"


def api_subject(operation: str) -> str:
    """The request subject of an operation, for example `submit` or `saga.register`."""
    return f"{API}.{operation}"


def agent_subject(agent: str, operation: str) -> str:
    """The request subject of an operation that agents' workers ask for, for example `claim`.

    The server lets only `agent` publish there.
    """
    return f"{AGENTS}.{agent}.{operation}"


def any_agent_subject(operation: str) -> str:
    """Where coordinators listen for an operation that any agent asks for."""
    return f"{AGENTS}.*.{operation}"


def asking_agent(subject: str) -> str:
    """The agent of a request: the token of its subject that the server enforced; "" for people."""
    parts = subject.split(".", 3)
    return parts[2] if len(parts) == 4 and parts[1] == "agents" else ""


def inbox_of_agent(agent: str) -> str:
    """What the inboxes of an agent that has credentials of its own begin with."""
    return f"_INBOX_{agent}"


def requests_of_agent(agent: str) -> str:
    """All that an agent may ask coordinators for."""
    return f"{AGENTS}.{agent}.>"


def roll_subject(agent: str) -> str:
    """Core NATS: each worker of `agent` listens there, in a queue group of its own name, and says
    which commands it has; who listens there is there."""
    return f"{PREFIX}.alive.{agent}.held"


def alive_of_agent(agent: str) -> str:
    """All that the workers of an agent use to show that they are there."""
    return f"{PREFIX}.alive.{agent}.>"


def answers_to(asker: str, question: str, number: int) -> str:
    """Where the answers to one question on a `roll_subject`, or on PEERS, go."""
    return f"{question.rpartition('.')[0]}.answers.{asker}.{number}"


def answers_of_agent(agent: str) -> str:
    """All that the workers of an agent answer there."""
    return f"{PREFIX}.alive.{agent}.answers.>"


def answers_for(asker: str) -> tuple[str, str]:
    """All answers of agents, and of peers, to one asker."""
    return f"{PREFIX}.alive.*.answers.{asker}.*", f"{PREFIX}.peers.answers.{asker}.*"


def traces_for(asker: str) -> str:
    """Where nats-server tells one coordinator who listens; the last token is the question's."""
    return f"{PREFIX}.peers.traces.{asker}"


def presence_subject(agent: str) -> str:
    """Core NATS, lossy: an instance of `agent` says that it is there."""
    return f"{PREFIX}.presence.{agent}"


def stop_subject(agent: str, task: str, step: str) -> str:
    """Core NATS, lossy: a hint to a step's handler that its work is no longer wanted.

    The body is the attempt, as digits, up to which this holds.
    """
    return f"{PREFIX}.stop.{agent}.{task}.{step}"


def paced_subject(agent: str) -> str:
    """Core NATS, lossy: said every second, while something limits an agent."""
    return f"{PREFIX}.paced.{agent}"


def stops_of_agent(agent: str) -> str:
    return f"{PREFIX}.stop.{agent}.*.*"


def document_subject(collection: str, key: str) -> str:
    """Core NATS, lossy: a document has a new version. A key may hold any character, so a digest
    stands for it."""
    return f"{PREFIX}.documents.{collection}.{hashlib.sha256(key.encode()).hexdigest()[:32]}"


def documents_of(collection: str) -> str:
    return f"{PREFIX}.documents.{collection}.*"
