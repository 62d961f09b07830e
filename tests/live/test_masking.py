"""Role `view` sees no payload, on any operation, wherever it is read."""

from __future__ import annotations

import base64
import sys
import typing
from collections.abc import AsyncIterator, Iterator
from typing import Any, get_args

import httpx
import orjson
import pytest
from harness.coordination import registered, working
from harness.eventually import eventually
from harness.shop import ONCE, QUICK
from harness.system import System
from headway.agents import Agent, Client, Context, Reject, tool
from headway.agents.manifest import Manifest
from headway.agents.masks import Mask
from headway.agents.views import FailureView, HistoryEntry, StepView
from headway.coordinator.masking import data_masked, digest_and_size, masked, reason_masked
from headway.coordinator.roles import NEEDS, VIEW
from headway.coordinator.token_making import token_making
from headway.sagas import Saga
from listening import Face, faces
from pydantic import BaseModel

CANARY = "kanarienvogel"  # in every payload, and in nothing else


@pytest.fixture
async def face(system: System) -> AsyncIterator[Face]:
    async with faces(system.nats.url, system.postgres_url) as [one]:
        yield one


@tool(recovery="natural")
async def note(about: str) -> str:
    return f"noted {about}"


def talkative() -> Agent:
    """Whatever it says, it says the canary."""
    agent = Agent("talkative")

    @agent.action("tell", tools=[note])
    async def tell(ctx: Context, order: dict[str, Any]) -> dict[str, Any]:
        await ctx.heartbeat({"at": CANARY})
        await ctx.call(note, CANARY)
        return {"told": CANARY, "order": order}

    @agent.action("refuse")
    async def refuse(ctx: Context, _order: dict[str, Any]) -> None:
        raise Reject(CANARY, kind="Refused")

    @agent.compensation("untell")
    async def untell(ctx: Context, _order: dict[str, Any]) -> None:
        raise Reject(CANARY, kind="Stuck")

    return agent


def tale() -> Saga:
    saga = Saga("tale")
    once = {"retry": ONCE, "compensation_retry": ONCE}
    saga.step("tell", "talkative.tell", compensate="talkative.untell", **once)
    saga.step("refuse", "talkative.refuse", after="tell", retry=QUICK, read_only=True)
    return saga


def wait() -> Saga:
    saga = Saga("wait")
    saga.wait("word", signal="word")
    saga.approval("agree", after="word")
    return saga


async def asked(face: Face, token: str, operation: str, **query: Any) -> httpx.Response:
    async with httpx.AsyncClient(base_url=face.address) as client:
        headers = {"Authorization": f"Bearer {token}"}
        return await client.get(f"/api/{operation}", headers=headers, params=query)


async def happened(client: Client) -> dict[str, Any]:
    """Tasks that hold the canary in each place that there is; what to ask with, by field."""
    manifest = Manifest(goal=CANARY)
    order = {"say": CANARY}
    parked = await client.run("tale", order, manifest=manifest, timeout=20)
    assert parked.status == "failed_to_compensate"
    waiting = (await client.submit("wait", order)).task
    await client.signal(waiting, "word", {"word": CANARY}, id="1")

    async def at_approval() -> bool:
        return bool((await client.parked(saga="wait")).waiting)

    await eventually(at_approval)
    await client.documents.collection("notes")
    await client.documents.put("notes", "one", {"note": CANARY}, expected=None)
    await client.connection.nc.publish("hw.tasks.tale", b'{"junk": "' + CANARY.encode() + b'"}')

    async def letters() -> bool:
        return bool((await client.dead_letters()).letters)

    await eventually(letters)
    return {
        "task": str(parked.task),
        "step": "tell",
        "phase": "action",
        "collection": "notes",
        "key": "one",
        "sequence": "1",
        "name": "tale",
    }


async def test_no_payload_is_seen_by_role_view_on_any_operation(system: System, face: Face) -> None:
    async with token_making(system.postgres_url) as making:
        operate = await making.create("olga", "operate")
        view = await making.create("vic", "view")
    async with (
        working(system.nats.url, talkative()),
        await Client.connect(system.nats.url, token=operate) as client,
    ):
        await registered(client, tale())
        await client.register(wait().define())
        fields = await happened(client)
        offer = face.coordinator._offer.people
        reading = [name for name in offer if NEEDS[name].role in ("", VIEW)]
        telling = []
        for operation in reading:
            model = offer[operation].request.model_fields
            query = {name: value for name, value in fields.items() if name in model}
            if operation == "audit" or "owner" in model:
                query = {}
            plain = await asked(face, operate, operation, **query)
            assert plain.status_code == 200, (operation, plain.text)
            shown = await asked(face, view, operation, **query)
            assert shown.status_code == 200, (operation, shown.text)
            if CANARY in _all(plain.text):
                telling.append(operation)
            assert CANARY not in _all(shown.text), operation
        assert {
            "get",
            "history",
            "step",
            "journal.read",
            "parked",
            "list",
            "timeline",
            "audit",
            "dead.get",
            "document.get",
            "document.history",
            "document.changes",
        } <= set(telling), "the canary was looked for where it is"
        [approval] = (await client.parked(saga="wait")).waiting
        await client.reject(approval.task, "agree")


def _all(text: str) -> str:
    """A body, and what is in it as base64."""
    found = [text]
    for word in text.split('"'):
        try:
            found.append(base64.b64decode(word, validate=True).decode())
        except ValueError:
            continue
    return "\n".join(found)


async def test_what_is_masked_is_a_digest_and_a_size_and_operate_sees_it_whole(
    system: System, face: Face
) -> None:
    async with token_making(system.postgres_url) as making:
        operate = await making.create("olga", "operate")
        submit = await making.create("sue", "submit")
        view = await making.create("vic", "view")
    async with (
        working(system.nats.url, talkative()),
        await Client.connect(system.nats.url, token=operate) as client,
        await Client.connect(system.nats.url, token=submit) as mine,
    ):
        await registered(client, tale())
        task = (await mine.run("tale", {"say": CANARY}, timeout=20)).task
        for token in (operate, submit):
            whole = (await asked(face, token, "step", task=str(task), step="tell")).json()
            assert whole["input"] == {"say": CANARY}
            assert whole["result"] == {"told": CANARY, "order": {"say": CANARY}}
            assert whole["error"] == {"type": "Stuck", "message": CANARY}
        shown = (await asked(face, view, "step", task=str(task), step="tell")).json()
        assert shown["input"] == digest_and_size(whole["input"])
        assert shown["result"] == digest_and_size(whole["result"])
        assert shown["error"]["type"] == "Stuck"
        assert shown["error"]["message"].startswith("(13 bytes, SHA-256 ")
        assert (shown["phase"], len(shown["attempts"])) == ("compensation", 1)
        page = (await asked(face, view, "parked")).json()
        assert page["waiting"][0]["reason"].startswith("step 'refuse': Refused: (")


async def test_the_step_operation_says_what_there_is(system: System, face: Face) -> None:
    async with (
        working(system.nats.url, talkative()),
        await Client.connect(system.nats.url) as client,
    ):
        await registered(client, tale())
        task = (await client.run("tale", {"say": 1}, timeout=20)).task
        action = await client.step(task, "tell", "action")
        assert action.status == "failed_to_compensate", action.error
        assert [(bar.phase, bar.outcome) for bar in action.attempts] == [("action", "completed")]
        assert action.action == "talkative.tell"
        refused = await client.step(task, "refuse")
        assert refused.results == {"tell": {"told": CANARY, "order": {"say": 1}}}
        answer = await asked(face, "hw_c0_only-for-tests", "step", task=str(task), step="nix")
        assert (answer.status_code, answer.json()["detail"]) == (
            404,
            "there is no step 'nix' in this task; there are tell, refuse",
        )


# The marks


def models_of(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for each in get_args(annotation):
        yield from models_of(each)


def reached(model: type[BaseModel], seen: dict[type[BaseModel], None]) -> None:
    if model in seen:
        return
    seen[model] = None
    for field in model.model_fields.values():
        for other in models_of(field.annotation):
            reached(other, seen)


def holds_anything(annotation: Any) -> bool:
    return annotation is Any or any(holds_anything(each) for each in get_args(annotation))


PLAIN = {  # what may be anything, and is no payload
    ("SagaView", "definition"),
    ("TaskRecord", "definitions"),
    ("Manifest", "acceptance"),
}


async def test_every_field_of_an_answer_that_may_hold_anything_is_marked_or_known_as_plain(
    face: Face,
) -> None:
    seen: dict[type[BaseModel], None] = {}
    for name, serve in face.coordinator._offer.people.items():
        if NEEDS[name].role in ("", VIEW):
            reached(serve.reply, seen)
    unmarked = {
        (model.__name__, name)
        for model in seen
        for name, field in model.model_fields.items()
        if holds_anything(field.annotation)
        and not any(isinstance(each, Mask) for each in field.metadata)
    }
    assert unmarked == PLAIN
    assert typing.get_type_hints(StepView)


def test_a_reason_keeps_who_and_what_kind_and_loses_what_was_said() -> None:
    assert reason_masked("step 'a': Ordered: as ordered").startswith("step 'a': Ordered: (10 bytes")
    assert "secret" not in reason_masked(
        "past the point of no return: step 'a': X: secret; step 'b': Y: secret\nsecret"
    )
    taken_over = "the command was taken over 3 times without an answer"
    for plain in (
        "cancelled",
        "the deadline passed",
        "step 'a': its action succeeded after all",
        f"step 'a': {taken_over}; a person must look at its agent",
    ):
        assert reason_masked(plain) == plain


@pytest.mark.parametrize("kind", ["Card declined", "Card: declined", "", "Card\ndeclined", "Card:"])
def test_a_reason_loses_what_was_said_whatever_an_agent_calls_it(kind: str) -> None:
    for reason in (f"step 'a': {kind}: secret", f"step 'a': {kind}: a: secret"):
        assert "secret" not in reason_masked(reason)
        assert "secret" not in reason_masked(f"{reason}; compensation failed: {reason}")
        assert reason_masked(reason).startswith("step 'a': ")


def test_an_events_field_that_nobody_knows_is_masked() -> None:
    data = {"step": "a", "attempt": 1, "later": CANARY, "result": None}
    assert data_masked(data) == data | {"later": digest_and_size(CANARY)}
    error = {"error": {"type": "X", "message": CANARY}}
    assert data_masked(error)["error"]["type"] == "X"
    assert CANARY not in str(data_masked(error))
    appended = {"steps": [{"name": "b", "action": "x.y", "input": CANARY, "when": CANARY}]}
    assert CANARY not in str(data_masked(appended))
    assert data_masked({"steps": ["a", "b"]}) == {"steps": ["a", "b"]}


def test_what_holds_no_payload_is_the_very_same_answer() -> None:
    entry = StepView(name="a", action="x.y", status="waiting", attempt=0, phase="action")
    assert masked(entry) is entry
    told = entry.model_copy(update={"error": FailureView(type="X", message=CANARY)})
    assert CANARY not in masked(told).model_dump_json()
    assert HistoryEntry.model_fields["data"].metadata


def test_a_masked_value_is_told_by_its_json() -> None:
    assert digest_and_size({"b": 1, "a": 2}) == digest_and_size({"a": 2, "b": 1})
    assert digest_and_size("x")["bytes"] == len(orjson.dumps("x"))
    assert sys.getsizeof(digest_and_size("x" * 10_000)) < 1_000
