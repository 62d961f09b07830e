"""The support desk's world: a scripted model, and services that do what they are asked once."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import orjson
import pytest
from harness.eventually import eventually
from headway.agents.errors import ToolError
from headway.agents.gates import Gate, arguments_digest
from headway.coordinator.ports import free_port
from headway.coordinator.signing import SigningKey
from headway.demo.calls import is_listening
from headway.demo.support.callbook import CallBook, Request
from headway.demo.support.downstream import KEYS_FILE, SERVICES_FILE, services
from headway.demo.support.household import household
from headway.demo.support.posting import post
from headway.demo.support.script import complete
from headway.demo.support.stub import STUB_FILE
from headway.demo.support.tickets import order_of, policy_on, ticket

KEY = SigningKey.of(bytes(32))
TICKET = [{"role": "system", "content": "…"}, {"role": "user", "content": ticket(7).text}]


def token(invocation: str, order: str = "L-0007", cents: int = 18_900, **changes: Any) -> str:
    now = int(time.time())
    gate = Gate(
        task=uuid4(),
        step="answer",
        phase="action",
        agent="support",
        attempt=1,
        epoch=0,
        version=3,
        tool="large_refund",
        arguments_digest=arguments_digest((), {"order": order, "amount_cents": cents}),
        invocation=UUID(invocation),
        token_id=uuid4(),
        issued_at=now,
        expires_at=now + 3_600,  # made when the file is read, which may be long before its test
    )
    return KEY.sign(replace(gate, **changes))


@pytest.fixture
def book(tmp_path: Path) -> CallBook:
    (tmp_path / KEYS_FILE).write_text(KEY.keys.model_dump_json())
    return CallBook(tmp_path / SERVICES_FILE, services(tmp_path / KEYS_FILE))


def rows(path: Path, statement: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute(statement).fetchall()


def payment(
    invocation: str = "", order: str = "L-0007", cents: int = 18_900, gate: str = ""
) -> Request:
    body = {"order": order, "amount_cents": cents}
    return Request("payments", body, invocation, gate)


def test_a_payment_is_made_once_however_often_it_is_asked_for(
    book: CallBook, tmp_path: Path
) -> None:
    invocation = str(uuid4())
    first = book.take(payment(invocation, gate=token(invocation)))
    again = book.take(payment(invocation, gate=token(invocation)))
    assert first.body == again.body == {"receipt": "refund of L-0007", "amount_cents": 18_900}
    path = tmp_path / SERVICES_FILE
    assert rows(path, "select subject, detail from effects") == [("L-0007", "18900")]
    assert rows(path, "select outcome from calls order by seq") == [("applied",), ("repeated",)]


ONE, OTHER = str(uuid4()), str(uuid4())


@pytest.mark.parametrize(
    ("request_", "status", "reason"),
    [
        (payment(ONE), 403, "the gate token is forged or damaged"),
        (
            payment(ONE, gate=token(OTHER)),
            403,
            "the gate token is for another invocation",
        ),
        (
            payment(ONE, gate=token(ONE, tool="refund")),
            403,
            "the gate token is for tool 'refund', not for 'large_refund'",
        ),
        (
            payment(ONE, cents=18_000, gate=token(ONE)),
            403,
            "the gate token is for a call of 'large_refund' with other arguments",
        ),
        (payment(ONE, gate=token(ONE, expires_at=0)), 403, "the gate token expired at 1970"),
        (
            payment(ONE, cents=18_901),
            400,
            "this is not an amount that was paid for this order",
        ),
        (payment(gate=token(ONE)), 400, "the call has no Idempotency-Key"),
        (Request("mail", {"to": "nobody"}, ONE), 400, "'nobody' is not an address"),
        (Request("orders", {"order": "X-1"}), 404, "there is no such order"),
        (Request("prices", {}), 404, "there is no such supplier"),
        (Request("purchases", {}, ONE), 404, "there is no such supplier"),
        (Request("gossip", {}), 404, "there is no service 'gossip'"),
    ],
)
def test_what_a_service_does_not_do(
    book: CallBook, tmp_path: Path, request_: Request, status: int, reason: str
) -> None:
    answer = book.take(request_)
    assert answer.status == status
    assert answer.body["error"]["message"].startswith(reason)
    assert rows(tmp_path / SERVICES_FILE, "select outcome from calls") == [("refused",)]
    assert rows(tmp_path / SERVICES_FILE, "select * from effects") == []


def test_a_key_that_was_used_for_something_else_is_refused(book: CallBook) -> None:
    mail = {"to": "ada@mail.example", "subject": "s", "text": "t"}
    assert book.take(Request("mail", mail, ONE)).status == 200
    other = book.take(Request("mail", mail | {"text": "u"}, ONE))
    assert (other.status, other.body) == (
        422,
        {"error": {"message": "this Idempotency-Key was used for another request"}},
    )


def test_a_small_refund_needs_a_token_but_no_tool_that_a_person_approves(book: CallBook) -> None:
    digest = arguments_digest((), {"order": "M-0007", "amount_cents": 1_250})
    gate = token(ONE, tool="refund", arguments_digest=digest)
    assert book.take(payment(ONE, "M-0007", 1_250, gate)).status == 200


def converse(answers: dict[str, Any], messages: list[dict[str, Any]] = TICKET) -> list[str]:
    """The tools that the model calls, each answered as given, and what it says at the end."""
    talk, said = list(messages), []
    while True:
        message = complete(talk)["choices"][0]["message"]
        talk.append(message)
        if "tool_calls" not in message:
            return [*said, message["content"]]
        [call] = message["tool_calls"]
        name = call["function"]["name"]
        said.append(f"{name} {call['function']['arguments']}")
        content = orjson.dumps(answers[name]).decode()
        talk.append({"role": "tool", "tool_call_id": call["id"], "content": content})


def test_the_scripted_model_pays_back_what_arrived_damaged_and_writes() -> None:
    answers = {
        "lookup_order": {"order": "L-0007", "price_cents": 18_900},
        "ask_policy": {"policy": policy_on("damaged")},
        "refund": {"receipt": "r", "amount_cents": 18_900},
        "send_mail": {"sent_to": "…"},
    }
    assert converse(answers) == [
        'lookup_order {"order":"L-0007"}',
        'ask_policy {"topic":"damaged"}',
        'refund {"order":"L-0007","amount_cents":18900}',
        'send_mail {"subject":"Your order L-0007","text":"We are sorry, and have paid 189.00 back'
        ' to you."}',
        "Order L-0007: We are sorry, and have paid 189.00 back to you.",
    ]


@pytest.mark.parametrize(
    ("changes", "calls"),
    [
        ({"refund": {"error": "rejected by eva"}}, 4),
        ({"ask_policy": {"policy": policy_on("weather")}}, 3),
    ],
    ids=["a person says no", "there is no rule"],
)
def test_the_scripted_model_apologises_when_it_may_not_pay(changes: Any, calls: int) -> None:
    answers = {
        "lookup_order": {"order": "L-0007", "price_cents": 18_900},
        "ask_policy": {"policy": policy_on("damaged")},
        "send_mail": {"sent_to": "…"},
    }
    said = converse(answers | changes)
    assert len(said) == calls + 1
    assert said[-1].endswith("We are sorry. A person will look into it and write to you.")


def test_the_scripted_model_asks_for_the_order_if_none_is_named() -> None:
    assert converse({}, [{"role": "user", "content": "Hello!"}]) == [
        "Please tell us the number of your order."
    ]


def test_tickets_differ_in_their_order_only() -> None:
    one, other = ticket(1), ticket(2)
    assert one.text.replace(one.order, other.order) == other.text
    assert order_of(one.order) is not None
    assert order_of("X-0001") is None


class Process:
    """A service that runs, and the file that it keeps."""

    def __init__(self, module: str, data: Path, file: str) -> None:
        port = free_port()
        self.address, self.file = f"127.0.0.1:{port}", data / file
        command = [sys.executable, "-P", "-m", f"headway.demo.support.{module}"]
        self.process = subprocess.Popen([*command, "--port", str(port), "--data", str(data)])

    async def post(self, path: str, body: Any, key: str = "") -> dict[str, Any]:
        headers = {"Idempotency-Key": key} if key else {}
        return await post(f"http://{self.address}/{path}", body, headers)


@pytest.fixture(params=["stub", "downstream"])
async def process(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Process]:
    file = {"stub": STUB_FILE, "downstream": SERVICES_FILE}[request.param]
    process = Process(request.param, tmp_path, file)
    await eventually(lambda: is_listening(process.address))
    yield process
    process.process.terminate()
    assert process.process.wait(timeout=10) == 0, "SIGTERM ends it in good order"


async def test_the_services_answer_over_http(process: Process) -> None:
    if process.file.name == SERVICES_FILE:
        assert await process.post("policy", {"topic": "regret"}) == {"policy": policy_on("regret")}
        with pytest.raises(ToolError, match=r"^there is no such order$") as refused:
            await process.post("orders", {"order": "X"})
        assert (refused.value.retryable, refused.value.no_effect) == (False, True)
        assert rows(process.file, "select outcome from calls") == [("read",), ("refused",)]
        return
    path, body = "v1/chat/completions", {"model": "any", "messages": TICKET}
    first = await process.post(path, body, "key-1")
    assert await process.post(path, body, "key-1") == first
    assert rows(process.file, "select outcome, tokens from calls") == [
        ("applied", first["usage"]["total_tokens"]),
        ("repeated", 0),
    ]
    for wrong in ({"messages": []}, {"messages": [7]}, {}):
        with pytest.raises(ToolError, match=r"^messages: "):
            await process.post(path, wrong, "key-2")


async def test_what_is_no_request_is_refused(process: Process) -> None:
    with pytest.raises(ToolError, match=r"^the body is not a JSON object$"):
        await process.post("any", [])


async def test_a_model_that_is_there_already_gets_no_stand_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "https://models.example/v1")
    async with household(tmp_path) as found:
        assert list(found) == ["HEADWAY_DEMO_SERVICES"]
        answer = await post(f"{found['HEADWAY_DEMO_SERVICES']}/policy", {"topic": "damaged"}, {})
    assert answer == {"policy": policy_on("damaged")}
    assert not (tmp_path / STUB_FILE).exists()


async def test_only_http_addresses_are_called() -> None:
    with pytest.raises(ToolError, match=r"^'file:///etc/passwd' is not an HTTP address$"):
        await post("file:///etc/passwd", {}, {})
