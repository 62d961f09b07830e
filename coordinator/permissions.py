"""Who may do what on NATS: the least that agents and people need. Pure: values, and their text.

Always holds: an agent publishes and hears nothing that is another agent's; it makes, changes and
reads no stream or consumer but by asking its own consumer for messages and answering for those.

A server does not check the subject that an answer is wanted on (`agents/strays.py`); what follows
from that is caught where messages are taken in.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headway.agents import subjects as s

ANY_AGENT = "*"
NO_DOMAIN = "_"  # what stands for JetStream's domain in an ack subject if it has none


@dataclass(frozen=True, slots=True)
class Permissions:
    """Subjects that may be published to and subscribed to, and no others."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class User:
    """One user of a nats-server: with a name and a password, or with the public half of a key.
    Without permissions it may do everything."""

    name: str = ""
    password: str = ""
    public_key: str = ""
    permissions: Permissions | None = None

    def __repr__(self) -> str:
        return f"User({self.name or self.public_key})"


def of_agent(agent: str, domain: str = NO_DOMAIN) -> Permissions:
    """What the workers of an agent need. `domain` is JetStream's, if the server has one."""
    acks = f"{s.COMMANDS_STREAM}.{agent}.*.*.*.*.*"  # as many as there are: so no form fits another
    inbox = "_INBOX" if agent == ANY_AGENT else s.inbox_of_agent(agent)
    return Permissions(
        publish=(
            s.event_subject(agent, "*"),
            s.requests_of_agent(agent),
            s.presence_subject(agent),
            s.answers_of_agent(agent),
            s.dead_subject(s.COMMANDS_STREAM, agent),
            f"{s.payloads_by(agent)}.>",
            f"$JS.API.CONSUMER.MSG.NEXT.{s.COMMANDS_STREAM}.{agent}",
            f"$JS.API.CONSUMER.INFO.{s.COMMANDS_STREAM}.{agent}",
            f"$JS.API.DIRECT.GET.{s.PAYLOADS_STREAM}.{s.payloads_by(agent)}.>",
            f"$JS.API.DIRECT.GET.{s.PAYLOADS_STREAM}.{s.payloads_to(agent)}.>",
            f"$JS.ACK.{acks}",
            f"$JS.ACK.{domain}.*.{acks}",
            f"$JS.ACK.{domain}.*.{acks}.*",
        ),
        subscribe=(
            f"{inbox}.>",
            s.stops_of_agent(agent),
            s.paced_subject(agent),
            s.roll_subject(agent),
            s.documents_of("*"),
            s.ASK_AGAIN,
        ),
    )


def of_people() -> Permissions:
    """What people and programs need that submit tasks and look after them. They read no stream but
    what is for people in the one of payloads; dead letters are an operation. Whoever shares this
    user hears the answers that all of them get: a role is a bound on HTTP, not among them."""
    return Permissions(
        publish=(
            f"{s.API}.>",
            s.TASKS,
            f"{s.PEOPLES_PAYLOADS}.>",
            f"$JS.API.DIRECT.GET.{s.PAYLOADS_STREAM}.{s.PEOPLES_PAYLOADS}.>",
            "$JS.API.INFO",
            "$JS.API.STREAM.NAMES",
            "$JS.API.STREAM.LIST",
            "$JS.API.STREAM.INFO.*",
            "$JS.API.CONSUMER.INFO.*.*",
            "$SRV.>",
        ),
        subscribe=("_INBOX.>", s.FEED, s.documents_of("*"), s.PRESENCE, s.ASK_AGAIN),
    )


def authorization(users: Sequence[User]) -> str:
    """The block of a nats-server's configuration that lets these in, and nobody else."""
    entries = "".join(f"    {entry(user)}\n" for user in users)
    return f"authorization {{\n  users: [\n{entries}  ]\n}}\n"


def entry(user: User) -> str:
    """One user in such a block."""
    fields = [f"nkey: {json.dumps(user.public_key)}"]
    if not user.public_key:
        fields = [f"user: {json.dumps(user.name)}", f"password: {json.dumps(user.password)}"]
    if user.permissions is not None:
        fields += [
            f"permissions: {{ publish: {_allow(user.permissions.publish)}, "
            f"subscribe: {_allow(user.permissions.subscribe)} }}"
        ]
    return f"{{ {', '.join(fields)} }}"


def _allow(subjects: Iterable[str]) -> str:
    return f"{{ allow: [{', '.join(json.dumps(subject) for subject in subjects)}] }}"
