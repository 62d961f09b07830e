"""What the server lets an agent with its own key publish and hear: its own, and nothing else.

The mallory of these tests has the credentials of an agent; the users are those that are generated.
"""

from __future__ import annotations

import pytest
from harness.eventually import eventually
from harness.rights import PEOPLE, as_user, granted
from headway.agents.connection import Connection, connect
from headway.agents.identity import new_task_id
from headway.coordinator.permissions import Permissions, User, authorization, entry, of_agent
from security.attackers import Attacker, attacking

TASK = str(new_task_id())
ACK = "1.2.3.1700000000000000000.0"

NOT_OURS_TO_PUBLISH = [
    f"hw.events.shop.{TASK}",
    f"hw.events.7.mallory.{TASK}",
    f"hw.commands.shop.a.{TASK}.a",
    f"hw.commands.mallory.a.{TASK}.a",
    *(
        f"hw.agents.shop.{operation}"
        for operation in ("claim", "key", "journal.append", "gate.redeem", "document.put")
    ),
    "hw.api.submit",
    "hw.api.cancel",
    "hw.tasks.linear",
    "hw.presence.shop",
    "hw.alive.shop.held",
    "hw.alive.mallory.held",
    "hw.alive.shop.answers.x.1",
    "hw.paced.shop",
    "hw.peers.held",
    "hw.coordinators",
    f"hw.stop.shop.{TASK}.a",
    f"hw.stop.mallory.{TASK}.a",
    f"hw.feed.linear.{TASK}.succeeded",
    "hw.documents.orders.0",
    "hw.dead.HW_COMMANDS.shop",
    "hw.dead.HW_COMMANDS",
    "hw.dead.HW_EVENTS",
    f"hw.payloads.by.shop.{TASK}.0.1.0",
    f"hw.payloads.to.shop.{TASK}.0.1.0",
    f"hw.payloads.to.mallory.{TASK}.0.1.0",
    f"hw.payloads.people.{TASK}.0.1.0",
    "$JS.API.CONSUMER.MSG.NEXT.HW_COMMANDS.shop",
    "$JS.API.CONSUMER.MSG.NEXT.HW_EVENTS.coordinator",
    "$JS.API.CONSUMER.MSG.NEXT.HW_TASKS.coordinator",
    "$JS.API.CONSUMER.INFO.HW_COMMANDS.shop",
    "$JS.API.CONSUMER.CREATE.HW_COMMANDS.mallory.hw.commands.shop.>",
    "$JS.API.CONSUMER.CREATE.HW_COMMANDS.mallory",
    "$JS.API.CONSUMER.DURABLE.CREATE.HW_COMMANDS.mallory",
    "$JS.API.CONSUMER.DELETE.HW_COMMANDS.shop",
    "$JS.API.CONSUMER.PAUSE.HW_COMMANDS.shop",
    "$JS.API.CONSUMER.PAUSE.HW_COMMANDS.mallory",
    "$JS.API.CONSUMER.RESET.HW_COMMANDS.mallory",
    "$JS.API.CONSUMER.UNPIN.HW_COMMANDS.mallory",
    *(
        f"$JS.API.STREAM.{verb}.{stream}"
        for verb in ("CREATE", "UPDATE", "DELETE", "PURGE", "INFO", "MSG.GET", "MSG.DELETE")
        for stream in ("HW_COMMANDS", "HW_EVENTS", "HW_PAYLOADS")
    ),
    "$JS.API.STREAM.SNAPSHOT.HW_PAYLOADS",
    "$JS.API.STREAM.NAMES",
    "$JS.API.STREAM.LIST",
    "$JS.API.INFO",
    "$JS.API.DIRECT.GET.HW_COMMANDS",
    "$JS.API.DIRECT.GET.HW_PAYLOADS",
    f"$JS.API.DIRECT.GET.HW_EVENTS.hw.events.7.shop.{TASK}",
    f"$JS.API.DIRECT.GET.HW_PAYLOADS.hw.payloads.by.shop.{TASK}.0.1.0",
    f"$JS.API.DIRECT.GET.HW_PAYLOADS.hw.payloads.to.shop.{TASK}.0.1.0",
    f"$JS.API.DIRECT.GET.HW_PAYLOADS.hw.payloads.people.{TASK}.0.1.0",
    f"$JS.ACK.HW_COMMANDS.shop.{ACK}",
    f"$JS.ACK._.hash.HW_COMMANDS.shop.{ACK}",
    f"$JS.ACK.HW_EVENTS.coordinator.{ACK}",
    f"$JS.ACK.HW_COMMANDS.shop.HW_COMMANDS.mallory.{ACK}",  # fits the form with a domain, too
    f"$JS.FC.HW_COMMANDS.shop.{TASK}",
    "$SRV.PING",
    "$SYS.REQ.SERVER.PING",
    "_INBOX.anybody.x",
    "_INBOX_shop.x",
    "_INBOX_mallory.x",
    "_COORDINATORS.x",
]

NOT_OURS_TO_HEAR = [
    ">",
    "*",
    "hw.>",
    "hw.commands.>",
    "hw.commands.mallory.>",
    "hw.events.>",
    "hw.events.mallory.*",
    "hw.agents.>",
    "hw.agents.mallory.claim",
    "hw.api.>",
    "hw.tasks.*",
    "hw.feed.>",
    "hw.dead.>",
    "hw.payloads.>",
    "hw.presence.*",
    "hw.stop.>",
    "hw.stop.shop.*.*",
    "hw.alive.shop.held",
    "hw.alive.>",
    "hw.paced.*",
    "hw.peers.>",
    "_INBOX.>",
    "_INBOX_shop.>",
    "_COORDINATORS.>",
    "$JS.>",
    "$JS.API.>",
    "$JS.ACK.>",
    "$JS.EVENT.>",
    "$SRV.>",
    "$SYS.>",
]


async def test_an_agent_publishes_nothing_that_is_not_its_own(
    mallory: Attacker, owner: Connection
) -> None:
    heard: list[str] = []
    await owner.wire.subscribe(">", lambda subject, *_: heard.append(subject))
    for subject in NOT_OURS_TO_PUBLISH:
        await mallory.publish(subject)
    await mallory.publish(f"hw.events.mallory.{TASK}")
    await eventually(lambda: f"hw.events.mallory.{TASK}" in heard)
    assert mallory.refused == NOT_OURS_TO_PUBLISH
    assert [subject for subject in heard if subject in NOT_OURS_TO_PUBLISH] == []


async def test_an_agent_hears_nothing_that_is_not_its_own(
    mallory: Attacker, owner: Connection
) -> None:
    heard = [await mallory.listen(subject) for subject in NOT_OURS_TO_HEAR]
    own = await mallory.listen("_INBOX_mallory.x")
    for subject in (f"hw.commands.mallory.a.{TASK}.a", f"hw.stop.shop.{TASK}.a", "_INBOX.x", "x"):
        await owner.nc.publish(subject, b"secret")
    await owner.nc.publish("_INBOX_mallory.x", b"")
    await owner.nc.flush()
    await eventually(lambda: own)
    assert mallory.refused == NOT_OURS_TO_HEAR
    assert [messages for messages in heard if messages] == []


async def test_a_queue_group_lets_an_agent_hear_no_more(mallory: Attacker) -> None:
    await mallory.nc.subscribe("hw.agents.shop.claim", queue="q")
    await mallory.nc.flush()
    await eventually(lambda: mallory.refused == ["hw.agents.shop.claim"])


async def test_people_are_neither_agents_nor_coordinators(nats_url: str) -> None:
    url = as_user(nats_url, PEOPLE)
    refused = [
        f"hw.events.shop.{TASK}",
        f"hw.commands.shop.a.{TASK}.a",
        "hw.agents.shop.claim",
        f"hw.feed.linear.{TASK}.succeeded",
        "hw.presence.shop",
        f"hw.payloads.by.shop.{TASK}.0.1.0",
        "$JS.API.STREAM.PURGE.HW_COMMANDS",
        "$JS.API.STREAM.DELETE.HW_COMMANDS",
        "$JS.API.STREAM.CREATE.HW_COMMANDS",
        "$JS.API.CONSUMER.CREATE.HW_COMMANDS.x",
        "$JS.API.CONSUMER.MSG.NEXT.HW_COMMANDS.shop",
        *(f"$JS.API.STREAM.MSG.GET.HW_{stream}" for stream in ("COMMANDS", "DEAD", "PAYLOADS")),
        f"$JS.API.DIRECT.GET.HW_PAYLOADS.hw.payloads.by.shop.{TASK}.0.1.0",
        f"$JS.API.DIRECT.GET.HW_PAYLOADS.hw.payloads.to.shop.{TASK}.0.1.0",
        "$JS.API.DIRECT.GET.HW_PAYLOADS.>",
        f"$JS.ACK.HW_COMMANDS.shop.{ACK}",
    ]
    async with attacking(url, None) as person:
        for subject in refused:
            await person.publish(subject)
        for subject in ("hw.commands.>", "hw.agents.>", "_COORDINATORS.>", "_INBOX_shop.>"):
            await person.listen(subject)
            refused.append(subject)
        await eventually(lambda: person.refused == refused)


async def test_a_key_that_is_not_granted_is_not_let_in(nats_url: str) -> None:
    stranger, _ = granted("mallory")
    with pytest.raises(Exception, match="Authorization Violation"):
        await connect(nats_url, name="stranger", credentials=stranger, timeout=1)


def test_agents_whose_names_are_alike_share_nothing() -> None:
    for name, other in (("pay", "pay-2"), ("a", "a_b"), ("17", "1"), ("coordinator", "shop")):
        mine, theirs = of_agent(name), of_agent(other)
        for ours in (*mine.publish, *mine.subscribe):
            assert ours in theirs.publish + theirs.subscribe or not any(
                _overlap(ours, each) for each in (*theirs.publish, *theirs.subscribe)
            ), (ours, other)


@pytest.mark.parametrize("name", ["17", "HW_COMMANDS", "shop"])
def test_no_ack_of_an_agent_is_one_for_the_consumer_of_another(name: str) -> None:
    """In neither of the forms that acks have, which their number of tokens tells apart."""
    acks = [each for each in of_agent(name).publish if each.startswith("$JS.ACK.")]
    for stream, consumer in (("HW_COMMANDS", "other"), ("HW_EVENTS", "coordinator")):
        numbers = "*.*.*.*.*"
        for form in (
            f"$JS.ACK.{stream}.{consumer}.{numbers}",
            f"$JS.ACK.*.*.{stream}.{consumer}.{numbers}",
            f"$JS.ACK.*.*.{stream}.{consumer}.{numbers}.*",
        ):
            assert not any(_overlap(form, each) for each in acks)


def test_the_configuration_says_who_may_do_what_in_quotes() -> None:
    odd = User('n"ame', "pass\\word}", permissions=Permissions(("a.>",), ("b",)))
    assert entry(odd) == (
        '{ user: "n\\"ame", password: "pass\\\\word}", permissions: '
        '{ publish: { allow: ["a.>"] }, subscribe: { allow: ["b"] } } }'
    )
    assert authorization([User(public_key="UA")]) == (
        'authorization {\n  users: [\n    { nkey: "UA" }\n  ]\n}\n'
    )
    assert "pass" not in repr(odd)


def _overlap(one: str, other: str) -> bool:
    """Whether some subject fits both patterns."""
    mine, theirs = one.split("."), other.split(".")
    for ours, its in zip(mine, theirs, strict=False):
        if ">" in (ours, its):
            return True
        if ours != its and "*" not in (ours, its):
            return False
    return len(mine) == len(theirs)
