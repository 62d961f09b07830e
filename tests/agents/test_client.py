"""The client against a stand-in for the coordinator's API."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import orjson
import pytest
from harness.eventually import eventually
from harness.services import RunningNats
from headway.agents import payloads, views
from headway.agents.client import Client
from headway.agents.connection import Connection, connect
from headway.agents.errors import Conflict, InvalidInput, NotFound, Refused, Unavailable
from headway.agents.identity import new_task_id
from headway.agents.subjects import PEOPLES_PAYLOADS, TASKS, TASKS_STREAM, feed_subject
from headway.agents.views import SubmitManyReply, SubmitOutcome, SubmitReceipt, TaskView
from headway.agents.waiting import POLL_S
from nats.aio.msg import Msg
from pydantic import BaseModel

TASK = UUID("0192f0c1-2d3e-7a4b-8c5d-6e7f8091a2b3")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def view(task: UUID = TASK, **changes: Any) -> TaskView:
    fields: dict[str, Any] = {
        "task": task,
        "saga": "refund",
        "saga_version": 1,
        "status": "running",
        "version": 1,
        "created_at": NOW,
        "updated_at": NOW,
    }
    return TaskView(**(fields | changes))


@dataclass
class Problem:
    code: int
    detail: str


Answer = BaseModel | bytes | Problem | None


class FakeApi:
    """Answers operations by functions from the request's JSON; None is no answer."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.asked: list[tuple[str, Any]] = []
        self.answers: dict[str, Callable[[Any], Answer]] = {}

    async def start(self) -> None:
        await self.connection.nc.subscribe("hw.api.>", cb=self._on_request)

    async def _on_request(self, message: Msg) -> None:
        operation = message.subject.removeprefix("hw.api.")
        request = orjson.loads(message.data)
        self.asked.append((operation, request))
        answer = self.answers[operation](request)
        match answer:
            case Problem(code, detail):
                body = orjson.dumps({"title": "no", "detail": detail, "status": code})
                headers = {"Nats-Service-Error": "no", "Nats-Service-Error-Code": str(code)}
                await self.connection.nc.publish(message.reply, body, headers=headers)
            case bytes():
                await message.respond(answer)
            case BaseModel():
                await message.respond(answer.model_dump_json().encode())

    async def announce(self, task: UUID, kind: str) -> None:
        self.connection.wire.publish(feed_subject("refund", str(task), kind), b"{}")


@pytest.fixture
async def api(nats_url: str) -> AsyncIterator[FakeApi]:
    async with await connect(nats_url, name="api") as connection:
        api = FakeApi(connection)
        await api.start()
        await connection.wire.flush()
        yield api


@pytest.fixture
async def client(nats_url: str) -> AsyncIterator[Client]:
    async with await Client.connect(nats_url, timeout=5) as client:
        yield client


def receipt_for(request: Any) -> SubmitReceipt:
    return SubmitReceipt(task=request["task"], saga=request["saga"], version=1, created=True)


class Order(BaseModel):
    id: int


async def test_submit_sends_a_task_id_and_gets_a_receipt(api: FakeApi, client: Client) -> None:
    api.answers["submit"] = receipt_for
    receipt = await client.submit("refund", Order(id=7), attributes={"customer": "A"})
    assert receipt.task.version == 7
    assert api.asked == [
        (
            "submit",
            {
                "saga": "refund",
                "task": str(receipt.task),
                "input": {"id": 7},
                "attributes": {"customer": "A"},
            },
        )
    ]
    again = await client.submit("refund", {"id": 7}, task=receipt.task, version=3)
    assert again.task == receipt.task
    assert api.asked[1][1]["version"] == 3


async def test_submit_asks_again_with_the_same_id_until_it_is_answered(
    api: FakeApi, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway.agents.api.TRY_TIMEOUT_S", 0.1)
    answers: list[Answer] = [None, Problem(503, "PostgreSQL is away")]
    api.answers["submit"] = lambda request: answers.pop(0) if answers else receipt_for(request)
    receipt = await client.submit("refund", 1)
    assert [request["task"] for _, request in api.asked] == [str(receipt.task)] * 3


@pytest.mark.parametrize(
    ("code", "error"),
    [(404, NotFound), (409, Conflict), (422, InvalidInput), (413, InvalidInput), (403, Refused)],
)
async def test_a_refusal_comes_as_the_error_that_names_it(
    api: FakeApi, client: Client, code: int, error: type[Exception]
) -> None:
    api.answers["submit"] = lambda request: Problem(code, "because")
    with pytest.raises(error, match="because") as caught:
        await client.submit("refund", 1)
    assert type(caught.value) is error
    assert len(api.asked) == 1


async def test_without_a_coordinator_the_error_says_how_to_start_one(nats_url: str) -> None:
    async with await Client.connect(nats_url, timeout=0.2) as client:
        with pytest.raises(
            Unavailable,
            match=r"^no coordinator answers on 127\.0\.0\.1:\d+: .*; start one with `headway up`",
        ):
            await client.submit("refund", 1)


async def test_with_a_coordinator_that_keeps_silent_the_error_says_what_may_be_the_matter(
    nats_url: str,
) -> None:
    async with await Client.connect(nats_url, timeout=0.2) as client:
        await client.connection.nc.subscribe("hw.api.submit")
        with pytest.raises(Unavailable, match="if one runs, it is frozen, or cut off from NATS"):
            await client.submit("refund", 1)


async def test_an_answer_that_is_not_understood_asks_about_versions(
    api: FakeApi, client: Client
) -> None:
    api.answers["get"] = lambda request: b'{"odd": 1}'
    with pytest.raises(Refused, match="are its version and ours the same"):
        await client.status(TASK)


async def test_what_a_newer_coordinator_tells_besides_is_ignored(
    api: FakeApi, client: Client
) -> None:
    told = orjson.loads(view(attributes={"customer": "A"}).model_dump_json())
    api.answers["get"] = lambda request: orjson.dumps({**told, "mood": "fine"})
    assert await client.status(TASK) == view(attributes={"customer": "A"})


@pytest.mark.parametrize("value", [object(), 2**70, {"x": {1, object()}}])
async def test_an_input_that_is_not_json_is_refused_before_it_is_sent(
    api: FakeApi, client: Client, value: Any
) -> None:
    with pytest.raises(InvalidInput, match="cannot be written as JSON"):
        await client.submit("refund", value)
    assert api.asked == []


async def test_what_a_person_says_that_cannot_be_asked_is_refused_before_it_is_sent(
    api: FakeApi, client: Client
) -> None:
    for asking, words in (
        (client.signal(TASK, "paid", id="x" * 201), "id: String should have at most 200"),
        (client.signal(TASK, "paid", float("nan")), "a number is not finite"),
        (client.signal(TASK, "paid", object()), "cannot be written as JSON"),
        (client.cancel(TASK, by="\ud800"), "surrogates not allowed"),
        (client.settle(TASK, "pay", "perhaps"), "outcome: Input should be 'happened' or"),  # type: ignore[arg-type]
        (client.parked(limit=0), "limit: Input should be greater than or equal to 1"),
    ):
        with pytest.raises(InvalidInput, match=words):
            await asking
    assert api.asked == []


async def test_an_input_over_1_mib_is_refused_before_it_is_sent(
    api: FakeApi, client: Client
) -> None:
    for send in (client.submit, client.publish):
        with pytest.raises(InvalidInput, match="1048577 bytes, more than 1048576"):
            await send("refund", "x" * (1_048_576 - 1))
    assert api.asked == []


async def test_a_large_input_travels_by_reference(
    api: FakeApi, client: Client, payload_store: None
) -> None:
    api.answers["submit"] = receipt_for
    await client.submit("refund", "x" * 300_000)
    [(_, request)] = api.asked
    assert "input" not in request
    body = await payloads.get(client.connection.wire, request["dataref"], request["datadigest"])
    assert orjson.loads(body) == "x" * 300_000


async def test_a_large_answer_is_fetched(api: FakeApi, client: Client, payload_store: None) -> None:
    large = view(reason="r" * 300_000).model_dump_json().encode()
    reference, digest = await payloads.put(
        client.connection.wire, PEOPLES_PAYLOADS, str(TASK), large
    )
    api.answers["get"] = lambda request: orjson.dumps({"dataref": reference, "datadigest": digest})
    assert len((await client.status(TASK)).reason) == 300_000


async def test_publish_is_a_plain_cloud_event_in_the_stream(client: Client) -> None:
    await client.connection.nc.jetstream().add_stream(name=TASKS_STREAM, subjects=[TASKS])
    task = await client.publish("refund", Order(id=7))
    stored = await client.connection.nc.jetstream().get_msg(TASKS_STREAM, 1)
    assert (stored.subject, stored.headers) == ("hw.tasks.refund", None)
    assert orjson.loads(stored.data or b"") == {
        "specversion": "1.0",
        "id": str(task),
        "type": "headway.task",
        "source": "/headway/client",
        "data": {"id": 7},
    }


async def test_publish_waits_for_a_stream_and_says_if_there_is_none(client: Client) -> None:
    publishing = asyncio.create_task(client.publish("refund", 1))
    await asyncio.sleep(0)
    await client.connection.nc.jetstream().add_stream(name=TASKS_STREAM, subjects=[TASKS])
    await publishing
    await client.connection.nc.jetstream().delete_stream(TASKS_STREAM)
    client.timeout = 0.2
    with pytest.raises(Unavailable, match="headway up"):
        await client.publish("refund", 1)


@pytest.mark.parametrize("saga", ["", "a.b", "x y", "*", ">"])
async def test_a_saga_name_that_cannot_be_a_subject_is_refused(client: Client, saga: str) -> None:
    with pytest.raises(InvalidInput, match="saga: "):
        await client.publish(saga, 1)


async def test_many_are_submitted_in_order_and_one_bad_does_not_stop_the_rest(
    api: FakeApi, client: Client
) -> None:
    def outcome(request: dict[str, Any]) -> SubmitOutcome:
        if request["input"] == 3:
            refused = views.Problem(title="no", detail="id", status=422)
            return SubmitOutcome(problem=refused)
        if request["input"] == 4:
            return SubmitOutcome(problem=views.Problem(title="no", detail="later", status=503))
        return SubmitOutcome(receipt=receipt_for(request))

    def reply(request: dict[str, Any]) -> SubmitManyReply:
        return SubmitManyReply(outcomes=[outcome(each) for each in request["tasks"]])

    api.answers |= {"submit.many": reply, "submit": receipt_for}
    done: list[int] = []
    outcomes = await client.submit_many("refund", [*range(300), object()], progress=done.append)
    assert len(outcomes) == 301
    assert {at for at, each in enumerate(outcomes) if isinstance(each, InvalidInput)} == {3, 300}
    asked = [
        each
        for operation, request in api.asked
        for each in (request["tasks"] if operation == "submit.many" else [request])
    ]
    by_input = {each["input"]: each["task"] for each in asked}
    assert [operation for operation, _ in api.asked].count("submit") == 1  # the one for later
    for at in (4, 299):
        receipt = outcomes[at]
        assert isinstance(receipt, SubmitReceipt)
        assert str(receipt.task) == by_input[at]
    assert done == sorted(done)
    assert done[-1] == 301


async def test_many_are_published(client: Client) -> None:
    await client.connection.nc.jetstream().add_stream(name=TASKS_STREAM, subjects=[TASKS])
    tasks = await client.publish_many("refund", range(1000))
    assert len(set(tasks)) == 1000
    info = await client.connection.nc.jetstream().stream_info(TASKS_STREAM)
    assert info.state.messages == 1000


async def test_result_asks_to_be_answered_once_the_task_is_settled(
    api: FakeApi, client: Client
) -> None:
    states = [view(status="succeeded", version=2), view()]
    api.answers["get"] = lambda request: states.pop()
    assert (await client.result(TASK, timeout=10)).status == "succeeded"
    assert [request["wait_s"] for _, request in api.asked] == [POLL_S, POLL_S]


async def test_run_asks_once_for_what_is_settled_soon_and_goes_on_asking_for_the_rest(
    api: FakeApi, client: Client
) -> None:
    api.answers["run"] = lambda request: view(status="succeeded", version=2)
    assert (await client.run("refund", {"id": 7}, task=TASK, timeout=10)).ended
    sent = {"saga": "refund", "task": str(TASK), "input": {"id": 7}, "attributes": {}}
    assert api.asked == [("run", sent | {"wait_s": POLL_S})]
    states = [view(status="parked", version=3, reason="look"), view()]
    api.answers |= {"run": lambda request: view(), "get": lambda request: states.pop()}
    assert (await client.run("refund", {"id": 7}, task=TASK)).reason == "look"
    assert [operation for operation, _ in api.asked[1:]] == ["run", "get", "get"]


async def test_run_gives_up_in_time_and_says_what_is_known(api: FakeApi, client: Client) -> None:
    api.answers |= {"run": lambda request: view(), "get": lambda request: view()}
    with pytest.raises(Unavailable, match=rf"task {TASK} is not settled after 0.1 s$"):
        await client.run("refund", {}, task=TASK, timeout=0.1)
    api.answers["run"] = lambda request: Problem(503, "PostgreSQL is away")
    with pytest.raises(Unavailable, match=r"after 0.1 s, nor known to be accepted$"):
        await client.run("refund", {}, task=TASK, timeout=0.1)


async def test_result_is_found_by_polling_when_no_news_comes(
    api: FakeApi, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway.agents.waiting.POLL_S", 0.05)
    states = [view()]
    api.answers["get"] = lambda request: states[-1]
    waiting = asyncio.create_task(client.result(TASK))
    await eventually(lambda: api.asked)
    states.append(view(status="parked", version=2, reason="look"))
    assert (await waiting).reason == "look"


async def test_result_gives_up_in_time(api: FakeApi, client: Client) -> None:
    api.answers["get"] = lambda request: view()
    with pytest.raises(Unavailable, match=f"task {TASK} is not settled after 0.1 s"):
        await client.result(TASK, timeout=0.1)


async def test_result_waits_for_a_task_that_is_not_accepted_yet(
    api: FakeApi, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway.agents.waiting.POLL_S", 0.02)
    answers: list[Answer] = [Problem(404, "no such task")] * 3
    api.answers["get"] = lambda request: answers.pop() if answers else view(status="succeeded")
    assert (await client.result(TASK)).ended
    monkeypatch.setattr("headway.agents.waiting.UNKNOWN_FOR_S", 0.05)
    api.answers["get"] = lambda request: Problem(404, "no such task")
    with pytest.raises(NotFound, match="no such task"):
        await client.result(TASK)


async def test_result_rides_out_a_restart_of_the_server(
    nats_server: RunningNats, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway.agents.waiting.POLL_S", 0.05)
    async with (
        await connect(nats_server.url, name="api") as connection,
        await Client.connect(nats_server.url, timeout=0.3) as client,
    ):
        api = FakeApi(connection)
        await api.start()
        states = [view()]
        api.answers["get"] = lambda request: states[-1]
        waiting = asyncio.create_task(client.result(TASK))
        await eventually(lambda: api.asked)
        await nats_server.kill()
        states.append(view(status="compensated", version=5))
        await nats_server.start()
        assert (await asyncio.wait_for(waiting, 10)).status == "compensated"


async def test_watch_shows_each_change_until_it_is_settled(api: FakeApi, client: Client) -> None:
    states = [view(version=1), view(version=1), view(version=2), view(version=3, status="parked")]
    api.answers["get"] = lambda request: states.pop(0)
    seen: list[int] = []
    async for each in client.watch(TASK):
        seen.append(each.version)
        for _ in range(2):
            await api.announce(TASK, "progressed")
    assert seen == [1, 2, 3]


async def test_results_come_as_tasks_settle(
    api: FakeApi, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway.agents.waiting.POLL_S", 0.2)
    tasks = [new_task_id() for _ in range(20)]
    settled: set[UUID] = set(tasks[:5])

    def answer(request: Any) -> TaskView:
        task = UUID(request["task"])
        return view(task, status="succeeded" if task in settled else "running")

    api.answers["get"] = answer
    seen: list[UUID] = []
    async for each in client.results(tasks):
        seen.append(each.task)
        if len(seen) == 5:
            settled.add(tasks[7])
            await api.announce(tasks[7], "succeeded")
        if len(seen) == 6:  # the rest without a word
            settled.update(tasks)
    assert set(seen[:5]) == set(tasks[:5])
    assert seen[5] == tasks[7]
    assert sorted(seen) == sorted(tasks)


async def test_history_is_read_page_by_page(api: FakeApi, client: Client) -> None:
    def page(request: Any) -> bytes:
        after = request["after"]
        entries = [
            {"version": number, "type": "t", "at": NOW, "data": {}}
            for number in range(after + 1, min(after + 3, 6))
        ]
        return orjson.dumps({"task": TASK, "entries": entries, "more": after + 3 < 6})

    api.answers["history"] = page
    assert [entry.version for entry in await client.history(TASK)] == [1, 2, 3, 4, 5]


async def test_each_operation_asks_what_it_says(api: FakeApi, client: Client) -> None:
    for operation in ("cancel", "retry", "settle", "resume", "get"):
        api.answers[operation] = lambda request: view()
    api.answers["list"] = lambda request: b'{"tasks": []}'
    api.answers["parked"] = lambda request: b'{"waiting": []}'
    saga = {"name": "refund", "version": 1, "digest": "d", "registered_at": NOW}
    for operation in ("saga.get", "saga.register"):
        api.answers[operation] = lambda request: orjson.dumps(saga)
    api.answers["saga.list"] = lambda request: orjson.dumps({"sagas": [saga]})
    api.answers["agents"] = lambda request: b'{"agents": []}'
    api.answers["health"] = lambda request: orjson.dumps(
        {"status": "ok", "postgres": "ok", "nats": "ok", "version": "0.1.0", "now": NOW}
    )
    await client.cancel(TASK, "wrong order")
    await client.retry(TASK, "pay")
    await client.settle(TASK, "pay", "happened", {"id": 1}, "seen in the ledger", by="ann")
    await client.resume(TASK)
    assert (await client.list(status=["parked"], limit=5)).tasks == []
    await client.parked(saga="refund")
    await client.register(b'{"name":"refund"}')
    assert (await client.saga("refund", 2)).digest == "d"
    assert len((await client.sagas()).sagas) == 1
    assert (await client.agents()).agents == []
    assert (await client.health()).now == NOW
    asked = dict(api.asked)
    assert asked["cancel"] == {"task": str(TASK), "by": "", "reason": "wrong order"}
    assert asked["retry"]["step"] == "pay"
    assert asked["settle"] == {
        "task": str(TASK),
        "by": "ann",
        "reason": "seen in the ledger",
        "step": "pay",
        "outcome": "happened",
        "result": {"id": 1},
    }
    assert (asked["list"]["status"], asked["list"]["limit"]) == (["parked"], 5)
    assert asked["parked"]["saga"] == "refund"
    assert asked["saga.get"] == {"name": "refund", "version": 2}
    with pytest.raises(InvalidInput, match="limit"):
        await client.list(limit=0)


async def test_a_persons_step_is_not_asked_twice_when_it_may_have_been_heard(
    api: FakeApi, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway.agents.api.TRY_TIMEOUT_S", 0.05)
    api.answers["retry"] = lambda request: None
    with pytest.raises(Unavailable):
        await client.retry(TASK)
    assert len(api.asked) == 1
