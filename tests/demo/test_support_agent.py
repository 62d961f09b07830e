"""The support agent offline: the model's wishes, the shop's services, and a journal in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest
from headway.agents import Reject
from headway.agents.errors import ToolError
from headway.agents.identity import new_task_id
from headway.agents.testing import MemoryJournal, context, opened, run
from headway.demo.support import agent, downstream
from headway.demo.support.agent import TURNS_MAX, Talk
from headway.demo.support.callbook import CallBook, Request
from headway.demo.support.script import complete
from headway.demo.support.tickets import ticket

TASK = new_task_id()
PAID = {"receipt": "refund of L-0007", "amount_cents": 18_900}
MAILED = {"sent_to": "customer-0007@mail.example"}
ENDING = {
    "text": "Order L-0007: We are sorry, and have paid 189.00 back to you.",
    "done": [PAID, MAILED],
}


class World:
    """The model and the services in this process. Each call that reaches one is in `posted`."""

    def __init__(self, path: Path) -> None:
        self.book = CallBook(path / "services.sqlite3", downstream.services(path / "no-keys"))
        self.model: Callable[[list[Any]], dict[str, Any]] = complete
        self.posted: list[tuple[str, Any]] = []

    async def post(
        self, url: str, body: Mapping[str, Any], headers: Mapping[str, str]
    ) -> dict[str, Any]:
        body = orjson.loads(orjson.dumps(body))
        self.posted.append((url, body))
        if url == "http://model/v1/chat/completions":
            return self.model(body["messages"])
        name = url.removeprefix("http://services/")
        answer = self.book.take(Request(name, body, headers.get("Idempotency-Key", "")))
        if answer.status >= 400:
            raise ToolError(answer.body["error"]["message"], retryable=False, no_effect=True)
        return answer.body

    def calls_of(self, service: str) -> list[Any]:
        return [body for url, body in self.posted if url == f"http://services/{service}"]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(tmp_path)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://model/v1/")
    monkeypatch.setenv("HEADWAY_DEMO_SERVICES", "http://services")
    monkeypatch.setattr(agent, "post", world.post)
    monkeypatch.setattr(downstream, "_closed", lambda *_: "")
    return world


def wishing(*calls: tuple[str, Any]) -> Callable[[list[Any]], dict[str, Any]]:
    """A model that wishes all of `calls` at once, and then says what it was told."""

    def model(messages: list[Any]) -> dict[str, Any]:
        told = [each["content"] for each in messages if each["role"] == "tool"]
        if told:
            message = {"role": "assistant", "content": " | ".join(told)}
        else:
            wishes = [
                {
                    "id": f"wish-{number}",
                    "type": "function",
                    "function": {"name": name, "arguments": arguments},
                }
                for number, (name, arguments) in enumerate(calls)
            ]
            message = {"role": "assistant", "content": None, "tool_calls": wishes}
        return {"choices": [{"message": message}], "usage": None}

    return model


async def answer(journal: MemoryJournal | None = None) -> Any:
    binding = agent.support().handlers["answer"]
    ctx = context(task=TASK, journal=journal, tools=list(TOOLS))
    return await run(binding, ticket(7).model_dump(), ctx=await opened(ctx))


TOOLS = (
    agent.ask_model,
    agent.lookup_order,
    agent.ask_policy,
    agent.refund,
    agent.large_refund,
    agent.send_mail,
)


async def test_a_ticket_is_looked_into_paid_and_answered(world: World) -> None:
    assert await answer() == ENDING
    assert [url.rpartition("/")[2] for url, _ in world.posted] == [
        *("completions", "orders", "completions", "policy", "completions", "payments"),
        *("completions", "mail", "completions"),
    ]


async def test_whatever_the_journal_was_cut_to_the_ticket_ends_alike_and_nothing_is_done_twice(
    world: World,
) -> None:
    whole = MemoryJournal()
    assert await answer(whole) == ENDING
    for length in range(len(whole.entries) + 1):
        journal = MemoryJournal()
        journal.entries = list(whole.entries)
        journal.cut(length)
        assert await answer(journal) == ENDING, f"cut to {length} entries"
    effects = world.book._db.execute("select service from effects order by seq").fetchall()
    assert effects == [("payments",), ("mail",)]


async def test_what_a_model_cannot_have_it_is_told(world: World) -> None:
    world.model = wishing(
        ("fly", "{}"),
        ("refund", '{"order": "L-0008", "amount_cents": 18900}'),
        ("refund", '{"order": "L-0007", "amount_cents": 18901}'),
        ("refund", '{"order": "L-0007"}'),
        ("lookup_order", "not JSON"),
        ("lookup_order", '{"order": "X-1"}'),
        ("send_mail", '{"to": "eve@mail.example", "subject": "s", "text": "t"}'),
    )
    told = (await answer())["text"].split(" | ")
    assert [orjson.loads(each)["error"] for each in told] == [
        "there is no such tool",
        "this ticket is about another order",
        "tool 'large_refund' failed: ToolError: this is not an amount that was paid for this order",
        "amount_cents: Field required",
        "body: Invalid JSON: expected ident at line 1 column 2",
        "tool 'lookup_order' failed: ToolError: there is no such order",
        "to: Extra inputs are not permitted",
    ]


async def test_a_model_that_never_ends_is_stopped(world: World) -> None:
    wish = wishing(("ask_policy", '{"topic": "regret"}'))
    world.model = lambda _messages: wish([])
    with pytest.raises(Reject, match=rf"^the model was not done after {TURNS_MAX} turns$"):
        await answer()


async def test_small_refunds_need_no_person(world: World) -> None:
    world.model = wishing(("refund", '{"order": "M-0007", "amount_cents": 1250}'))
    journal = MemoryJournal()
    ctx = context(task=TASK, journal=journal)
    await run(agent.support().handlers["answer"], ticket(7, "M").model_dump(), ctx=ctx)
    tools = [entry.tool for entry in journal.of_kind("intent")]
    assert tools == ["ask_model", "refund", "ask_model"]


async def test_the_buyer_asks_all_and_buys_from_the_cheapest(world: World) -> None:
    bought = await run(agent.research().handlers["buy"], "project-1", ctx=context(task=TASK))
    assert bought == {"bought_from": "south"}
    assert len(world.calls_of("prices")) == 3


def test_a_long_conversation_keeps_its_beginning_and_never_an_answer_without_its_wish() -> None:
    talk = Talk(messages=[{"role": "system"}, {"role": "user"}])
    for turn in range(60):
        talk.messages.append({"role": "assistant", "tool_calls": [{"id": f"w{turn}"}]})
        talk.take_in(f"w{turn}", {"turn": turn})
        talk.take_in(f"w{turn}", {"turn": turn})
        assert talk.messages[:2] == [{"role": "system"}, {"role": "user"}]
        assert len(talk.messages) <= 2 + agent.TALK_KEPT
        assert talk.messages[2]["role"] == "assistant"
