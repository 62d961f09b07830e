"""Journals through NATS and two coordinators, as agents use them, while PostgreSQL is killed."""

from __future__ import annotations

import asyncio
from uuid import UUID

import asyncpg
import pytest
from harness.coordination import client_of, coordinators
from harness.eventually import eventually
from harness.journals import ERRAND, failure, intent, result
from headway.agents import Client, Conflict, InvalidInput, Refused
from headway.agents.api import Api
from headway.agents.auditing import AuditPage, AuditRequest
from headway.agents.entries import (
    JournalAppend,
    JournalAppended,
    JournalOpen,
    JournalOpened,
    JournalPage,
    JournalRead,
    JournalSettle,
    NewEntry,
)
from headway.agents.manifest import Manifest

AGENTS = 32
CALLS = 25  # each: two entries


class Author:
    """An agent's side of one journal; its questions are asked again while nobody answers."""

    def __init__(self, client: Client, task: UUID) -> None:
        self.api, self.task = Api(client.connection, agent="clerk"), task
        self.operation = {"task": task, "step": "do", "phase": "action"}
        self.epoch = self.seq = 0

    async def open(self) -> JournalOpened:
        request = JournalOpen(**self.operation, attempt=1, epoch=0, worker="w")
        opened = await self.api.ask("journal.open", request, JournalOpened)
        self.epoch = opened.epoch
        return opened

    async def append(self, *entries: NewEntry) -> JournalAppended:
        request = JournalAppend(
            **self.operation, epoch=self.epoch, seq=self.seq + 1, entries=list(entries)
        )
        appended = await self.api.ask("journal.append", request, JournalAppended)
        self.seq = appended.seq
        return appended

    async def read(self) -> JournalPage:
        return await self.api.ask("journal.read", JournalRead(**self.operation), JournalPage)

    async def work(self, calls: int) -> None:
        for number in range(calls):
            key = f"look#{number + 1}"
            await self.append(intent("look", key, digest=key))
            await self.append(result("look", key, data=number))


async def authors(client: Client, count: int, manifest: Manifest | None = None) -> list[Author]:
    receipts = [await client.submit("errand", {}, manifest=manifest) for _ in range(count)]
    made = [Author(client, receipt.task) for receipt in receipts]
    await asyncio.gather(*(author.open() for author in made))
    return made


async def test_postgresql_killed_and_restarted_among_many_agents_loses_and_doubles_nothing(
    nats_url, postgres_server
):
    async with coordinators(nats_url, postgres_server.url, 2), client_of(nats_url) as client:
        await registered(client)
        working = await authors(client, AGENTS)
        done = asyncio.gather(*(author.work(CALLS) for author in working))
        for part in (1, 2):
            goal = part * AGENTS * CALLS * 2 // 3
            await eventually(
                lambda goal=goal: sum(author.seq for author in working) > goal, 20, what="progress"
            )
            await postgres_server.kill()
            await postgres_server.start()
        await done
        for author in working:
            entries = (await author.read()).entries
            assert [entry.seq for entry in entries] == list(range(1, 2 * CALLS + 1))
            assert [entry.data for entry in entries[1::2]] == list(range(CALLS))
    connection = await asyncpg.connect(postgres_server.url)
    assert await connection.fetchval("SELECT count(*) FROM headway.journal_entries") == (
        AGENTS * CALLS * 2
    )
    await connection.close()


async def test_refusals_reach_the_agent_with_their_kind_and_guards_hold_the_task(
    nats_url, postgres_url
):
    async with coordinators(nats_url, postgres_url), client_of(nats_url) as client:
        await registered(client)
        [author] = await authors(client, 1, Manifest(tools=["look", "pay"]))
        with pytest.raises(Refused) as refused:
            await author.append(intent("wire"))
        assert (refused.value.code, refused.value.kind) == (403, "tool-not-allowed")
        assert refused.value.reason == (
            "tool 'wire' is not one of the 2 that the task's manifest allows"
        )
        assert await held(client, author.task)  # already: what the agent says now is too late
        for number in range(3):
            key = f"pay#{number}"
            await author.append(intent("pay", key, digest=key), failure("pay", key))
        with pytest.raises(Conflict) as conflict:
            await author.append(intent("look"))
        assert conflict.value.kind == "tripped"
        author.seq += 1
        with pytest.raises(Conflict) as conflict:
            await author.append(NewEntry(kind="note"))
        assert conflict.value.kind == "out-of-order"
        author.epoch = 7
        with pytest.raises(Conflict) as conflict:
            await author.append(NewEntry(kind="note"))
        assert conflict.value.kind == "superseded"
        with pytest.raises(InvalidInput, match="key: a result needs the key of its call"):
            await author.append(NewEntry(kind="result"))
        settling = JournalSettle(**author.operation, key="pay#1", outcome="happened")
        with pytest.raises(Conflict, match="the task is running; a call is settled by hand only"):
            await client.ask("journal.settle", settling, JournalAppended)
        page = await client.ask("audit", AuditRequest(task=author.task), AuditPage)
        assert [entry.kind for entry in page.entries].count("failure") == 3
        assert "TaskHeld" in {entry.kind for entry in page.entries}


async def registered(client: Client) -> None:
    await eventually(lambda: client.register(ERRAND), 15, what="a coordinator answers")


async def held(client: Client, task: UUID) -> bool:
    return "TaskHeld" in {entry.type for entry in await client.history(task)}
