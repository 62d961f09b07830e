"""Traces as a collector gets them, from systems whose processes are killed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from harness.collector import Collector, Taken, plain
from harness.coordination import registered, working
from harness.eventually import eventually
from harness.findings import note
from harness.shop import ONCE as HARNESS_ONCE
from harness.shop import linear
from harness.spantree import tree
from harness.system import System
from headway.agents import Agent, Context, Metered, ToolFailed, tool, tracing
from headway.agents.tools import ONCE
from headway.agents.views import TaskView
from headway.coordinator import span_debts, span_sending
from headway.sagas import Saga
from opentelemetry import context, trace

KIND = "span tree"
OURS = "headway"
SECRET = "xyzzy-must-not-leave"


def whole(spans: list[Taken], task: UUID) -> list[Taken]:
    """A trace's spans: one root, no orphans, none of them twice."""
    ids = Counter(each.span.span_id for each in spans)
    assert [span_id.hex() for span_id, times in ids.items() if times > 1] == []
    roots = [each.span.span_id for each in spans if not each.span.parent_span_id]
    assert roots == [tracing.root_span(task)]
    parents = {each.span.parent_span_id for each in spans} - {b""}
    assert parents <= ids.keys(), "there are orphans"
    return spans


async def trace_of(collector: Collector, task: UUID, within_s: float = 15.0) -> list[Taken]:
    """The spans of a task once its root is there."""

    def has_root() -> bool:
        spans = collector.of_trace(task.bytes)
        return any(not each.span.parent_span_id for each in spans)

    await eventually(has_root, within_s, what="the root of the trace")
    return collector.of_trace(task.bytes)


def names(spans: list[Taken]) -> list[str]:
    return sorted(each.span.name for each in spans)


def named(spans: list[Taken], name: str) -> Taken:
    [found] = [each for each in spans if each.span.name == name]
    return found


def links(taken: Taken) -> dict[str, tuple[bytes, bytes]]:
    return {
        link.attributes[0].value.string_value: (link.trace_id, link.span_id)
        for link in taken.span.links
    }


async def test_a_task_killed_twice_has_one_root_no_orphans_and_no_span_twice(
    system: System, collector: Collector, tmp_path: Path, request: pytest.FixtureRequest
):
    """Its agent is killed in two steps, a coordinator between commit and export."""
    swift = ("--span-lease", "500", "--ack-wait", "0.6")
    deadly, peers = await system.coordinator("--die-at", "spans", *swift), []
    await registered(system.client, linear())
    first = await system.agent("--ack-wait", "0.6")
    once, twice = tmp_path / "once", tmp_path / "twice"
    order = {"a": f"until={once} trace=mine", "b": f"until={twice} trace=kept"}
    task = (await system.client.submit("linear", order)).task
    await system.called(task)
    await first.kill()
    second = await system.agent("--ack-wait", "0.6")
    await system.called(task, 2)

    async def called(count: int) -> bool:
        if not deadly.running and not peers:  # on a slow machine spans are due before the end
            peers.append(await system.coordinator(*swift))
        return len(system.downstream.calls(task)) >= count

    once.touch()
    await eventually(lambda: called(3), 20, what="call 3")
    await second.kill()
    third = await system.agent("--ack-wait", "0.6")
    await eventually(lambda: called(4), 20, what="call 4")
    if not peers:
        await system.coordinator(*swift)
    twice.touch()
    assert (await system.client.result(task)).status == "succeeded"
    await trace_of(collector, task)
    third.terminate()
    await third.ended()
    spans = whole(collector.of_trace(task.bytes), task)
    note(request, KIND, (tree(spans),))
    assert names([each for each in spans if each.scope == OURS]) == [
        *(f"invoke_agent shop.{letter}" for letter in "abc"),
        "invoke_workflow linear",
    ]
    for letter in "ab":
        attempt = named(spans, f"invoke_agent shop.{letter}")
        assert attempt.attributes["headway.take_overs"] >= 1
        assert attempt.attributes["headway.outcome"] == "completed"
    mine = named(spans, "kept").span
    assert mine.parent_span_id == tracing.attempt_span(task, "b", "action", 1)


async def test_spans_that_are_sent_again_after_a_crash_are_the_same(
    system: System, collector: Collector
):
    deadly = await system.coordinator("--die-at", "sent", "--span-lease", "500")
    await registered(system.client, linear())
    await system.agent()
    task = (await system.client.submit("linear", {})).task
    await trace_of(collector, task)
    await deadly.ended()
    await system.coordinator("--span-lease", "500", "--ack-wait", "0.6")

    async def paid() -> bool:
        return not await system.fetch("SELECT FROM headway.span_debts")

    await eventually(paid, 15)
    twice = collector.of_trace(task.bytes)
    assert len(twice) == 8
    sent = {each.span.SerializeToString(deterministic=True) for each in twice}
    assert len(sent) == 4
    assert twice[0].resource == twice[-1].resource


@tool(recovery="natural", model=True)
async def think(text: str) -> Metered[str]:
    used = {"input_tokens": 60, "output_tokens": 40, "cost_usd": 0.5}
    return Metered(f"{text}!", **used, provider="openai", model="gpt-5")


@tool(recovery="natural", retry=ONCE)
async def stumble(text: str) -> str:
    raise ValueError(text)


def thinker() -> Agent:
    agent = Agent("thinker")

    @agent.action("think", tools=[think, stumble])
    async def do_think(ctx: Context, order: dict[str, Any]) -> dict[str, str]:
        try:
            await ctx.call(stumble, order["secret"])
        except ToolFailed:
            return {"said": await ctx.call(think, order["secret"]), "within": ctx.traceparent}
        return {}

    return agent


async def thought(system: System, **given: Any) -> TaskView:
    """A task that calls a tool, which fails, and a model, over a secret."""
    async with system.coordinating(), working(system.nats.url, thinker()):
        await registered(system.client, Saga("thought").step("think", "thinker.think", pivot=True))
        receipt = await system.client.submit("thought", {"secret": SECRET}, **given)
        return await system.client.result(receipt.task, timeout=30)


async def test_calls_of_tools_and_models_are_within_their_attempt_with_what_they_used(
    system: System, collector: Collector
):
    view = await thought(system)
    spans = whole(await trace_of(collector, view.task), view.task)
    assert names(spans) == [
        *("chat gpt-5", "execute_tool stumble", "invoke_agent thinker.think"),
        "invoke_workflow thought",
    ]
    attempt, asked, failed = (
        named(spans, name)
        for name in ("invoke_agent thinker.think", "chat gpt-5", "execute_tool stumble")
    )
    assert asked.span.parent_span_id == failed.span.parent_span_id == attempt.span.span_id
    told = asked.attributes
    assert (told["gen_ai.usage.input_tokens"], told["gen_ai.usage.output_tokens"]) == (60, 40)
    assert told["headway.call.cost_usd"] == 0.5
    assert (told["gen_ai.provider.name"], told["gen_ai.request.model"]) == ("openai", "gpt-5")
    assert (told["gen_ai.operation.name"], told["gen_ai.tool.name"]) == ("chat", "think")
    assert len(told["headway.call.arguments_digest"]) == 64
    assert failed.span.status.code == failed.span.status.STATUS_CODE_ERROR
    assert failed.attributes["headway.outcome"] == "failure"


async def test_a_handler_is_given_the_traceparent_of_its_attempt(system: System):
    view = await thought(system)
    span = tracing.attempt_span(view.task, "think", "action", 1)
    expected = tracing.traceparent(view.task, span)
    assert view.steps[0].result["within"] == expected


async def test_no_payload_is_in_any_span_record_or_number(system: System, collector: Collector):
    view = await thought(system)
    await trace_of(collector, view.task)
    await eventually(lambda: collector.records and collector.metrics)
    sent = [*(each.span for each in collector.spans), *collector.records, *collector.metrics]
    assert not [each for each in sent if SECRET.encode() in each.SerializeToString()]


async def test_who_wants_arguments_and_results_in_spans_gets_them(
    system: System, collector: Collector, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    view = await thought(system)
    told = named(await trace_of(collector, view.task), "chat gpt-5").attributes
    assert told["gen_ai.tool.call.arguments"] == f'{{"text":"{SECRET}"}}'
    assert told["gen_ai.tool.call.result"] == f'"{SECRET}!"'


async def test_a_task_links_to_the_span_in_which_it_was_submitted(
    system: System, collector: Collector
):
    submitter = trace.SpanContext(7, 11, True, trace.TraceFlags(1))
    around = trace.set_span_in_context(trace.NonRecordingSpan(submitter))
    token = context.attach(around)
    try:
        view = await thought(system)
    finally:
        context.detach(token)
    root = named(await trace_of(collector, view.task), "invoke_workflow thought")
    assert links(root) == {"submitter": ((7).to_bytes(16), (11).to_bytes(8))}


async def test_what_its_submitter_does_not_trace_is_not_traced(
    system: System, collector: Collector
):
    submitter = trace.SpanContext(7, 11, True, trace.TraceFlags(0))
    token = context.attach(trace.set_span_in_context(trace.NonRecordingSpan(submitter)))
    try:
        view = await thought(system)
    finally:
        context.detach(token)
    assert view.steps[0].result["within"].endswith("-00")
    await eventually(lambda: collector.metrics)
    assert collector.of_trace(view.task.bytes) == []
    assert await system.fetch("SELECT FROM headway.span_debts") == []


async def test_without_the_variables_nothing_is_sent_and_nothing_owed(
    system: System, collector: Collector, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    await thought(system)
    assert collector.asked == 0
    assert await system.fetch("SELECT FROM headway.span_debts") == []


async def test_a_compensation_links_to_what_it_undoes_and_a_child_to_its_parent(
    system: System, collector: Collector
):
    async with system.coordinating(), system.working():
        await registered(system.client, linear("inner", "a"))
        saga = linear("outer", "a").child("inner", "inner", after="a")
        await registered(
            system.client, saga.step("b", "shop.b", after="inner", pivot=True, retry=HARNESS_ONCE)
        )
        view = await system.client.run("outer", {"b": "reject"}, timeout=30)
        assert view.status == "compensated"
        spans = await trace_of(collector, view.task)
        whole(spans, view.task)
        undo = named(spans, "invoke_agent shop.undo-a")
        done = named(spans, "invoke_agent shop.a")
        assert links(undo)["undoes"] == (view.task.bytes, done.span.span_id)
        assert named(spans, "invoke_agent shop.b").attributes["error.type"] == "Ordered"
        child_action, _child_undo = sorted(
            (each for each in spans if each.span.name == "child inner"),
            key=lambda each: each.span.start_time_unix_nano,
        )
        child, child_root = links(child_action)["child"]
        inner = whole(await trace_of(collector, UUID(bytes=child)), UUID(bytes=child))
        root = named(inner, "invoke_workflow inner")
        assert root.span.span_id == child_root
        assert links(root)["parent"] == (view.task.bytes, child_action.span.span_id)


async def test_a_collector_that_is_away_holds_up_nothing_and_gets_the_spans_when_it_is_back(
    system: System, collector: Collector, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(span_sending, "LEASE_MS", 200)
    collector.status = 503
    async with system.coordinating(), system.working():
        await registered(system.client, linear())
        view = await system.client.run("linear", {}, timeout=30)
        assert view.status == "succeeded"
        await eventually(lambda: collector.asked)
        collector.status = 200
        whole(await trace_of(collector, view.task), view.task)


async def test_what_a_coordinator_of_the_release_before_owes_is_sent(
    system: System, collector: Collector
):
    collector.status = 503
    view = await thought(system)
    await system.fetch(
        """
        WITH gone AS (DELETE FROM headway.span_debts RETURNING tasks[1] AS task, versions[1] AS at)

        INSERT INTO headway.owed_spans (task_id, version, sent, due_at, since)
        SELECT task, at, 0, now(), now() FROM gone
        """
    )
    collector.status = 200
    async with system.coordinating():
        whole(await trace_of(collector, view.task), view.task)
        assert await system.fetch("SELECT FROM headway.owed_spans") == []


async def test_of_a_task_that_takes_long_what_ended_is_sent_before_it_ends_and_not_again(
    system: System, collector: Collector, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr(span_debts, "LONG_MS", 0)
    done = tmp_path / "done"
    async with system.coordinating(), system.working():
        await registered(system.client, linear())
        order = {"b": f"until={done}"}
        task = (await system.client.submit("linear", order)).task
        await eventually(lambda: names(collector.of_trace(task.bytes)) == ["invoke_agent shop.a"])
        done.touch()
        whole(await trace_of(collector, task), task)


async def test_a_batch_is_a_trace_of_its_own_that_links_to_its_tasks(
    system: System, collector: Collector
):
    view = await thought(system)
    batches = [each for each in collector.spans if each.span.name == "commit batch"]
    assert batches
    assert all(each.span.trace_id != view.task.bytes for each in batches)
    assert links(batches[0])["task"] == (view.task.bytes, tracing.root_span(view.task))


async def test_each_change_of_state_and_each_entry_is_a_record_in_its_trace(
    system: System, collector: Collector
):
    view = await thought(system)
    await eventually(lambda: "task succeeded" in bodies(collector))
    assert bodies(collector) >= {
        *("task running", "task succeeded"),
        *("journal intent", "journal failure", "journal result"),
    }
    assert {each.trace_id for each in collector.records} == {view.task.bytes}
    told = [plain(each.attributes) for each in collector.records]
    assert [each["headway.version"] for each in told if "headway.version" in each] == [2, 4]


def bodies(collector: Collector) -> set[str]:
    return {each.body.string_value for each in collector.records}
