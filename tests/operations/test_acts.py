"""The audit log tells of acts on the system as well: who did what, when and why, and no secret."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from headway.agents import Client
from headway.agents.auditing import AuditEntry
from headway.agents.errors import NotFound
from headway.agents.nkeys import UserKey, new_seed
from headway.coordinator.grants import grants_in
from headway.coordinator.token_making import token_making

Told = tuple[str, str, str, str]


async def told_since(client: Client, since: datetime) -> list[AuditEntry]:
    """What was done about no task."""
    found = [entry async for entry in client.audit(since=since)]
    return [entry for entry in found if entry.task is None]


def in_words(entries: list[AuditEntry]) -> list[Told]:
    return [(entry.kind, entry.who, entry.what, entry.reason) for entry in entries]


@pytest.fixture
def since() -> datetime:
    return datetime.now(UTC) - timedelta(milliseconds=1)


async def test_limits_are_in_it(client, since):
    await client.set_limit("agent", "desk", rate=100.0, concurrency=7, by="ann")
    await client.remove_limit("agent", "desk", by="bob")
    with pytest.raises(NotFound):
        await client.remove_limit("agent", "desk", by="eve")
    entries = await told_since(client, since)
    assert in_words(entries) == [
        ("limit-set", "ann", "agent desk", ""),
        ("limit-removed", "bob", "agent desk", ""),
    ]
    assert entries[0].data == {"rate": 100.0, "burst": 21, "concurrency": 7}


async def test_pauses_are_in_it_and_no_act_that_changed_nothing(client, since):
    for reason in ("maintenance", "again"):
        await client.pause_agent("absent", reason, by="ann")
    await client.resume_agent("absent", "done", by="bob")
    assert in_words(await told_since(client, since)) == [
        ("agent-paused", "ann", "agent absent", "maintenance"),
        ("agent-resumed", "bob", "agent absent", "done"),
    ]


async def test_keys_of_agents_are_in_it_by_their_public_half(world, client, since):
    seed = new_seed()
    public = UserKey.of(seed).public
    async with grants_in(world.postgres_url) as grants:
        await grants.grant("shop", public, "ann")
        await grants.revoke("shop", "bob")
    entries = await told_since(client, since)
    assert in_words(entries) == [
        ("key-granted", "ann", "agent shop", ""),
        ("key-revoked", "bob", "agent shop", ""),
    ]
    assert [entry.data for entry in entries] == 2 * [{"public_key": public}]


async def test_tokens_are_in_it_without_their_secrets(world, client, since):
    async with token_making(world.postgres_url) as making:
        token = await making.create("carl", "submit", by="ann")
        await making.revoke("carl", by="bob")
    world.forget_tokens()
    entries = await told_since(client, since)
    assert in_words(entries) == [
        ("token-created", "ann", "carl", ""),
        ("token-revoked", "bob", "carl", ""),
    ]
    _, public, secret = token.split("_", 2)
    assert [entry.data for entry in entries] == 2 * [{"id": public, "role": "submit"}]
    assert secret not in "".join(entry.model_dump_json() for entry in entries)


async def test_acts_on_dead_letters_are_in_it_with_their_task_and_no_text(client, since):
    jetstream = client.connection.nc.jetstream()
    await jetstream.publish("hw.dead.HW_TASKS", LETTER)
    [letter] = (await client.dead_letters(limit=1)).letters
    await client.drop_letter(letter.sequence, "of no use", by="ann")
    await client.drop_letter(letter.sequence, "once more", by="bob")
    [entry] = [each async for each in client.audit(letter.task) if each.at > since]
    assert (entry.kind, entry.who, entry.reason) == ("dead-letter-dropped", "ann", "of no use")
    assert (entry.task, entry.what) == (letter.task, f"letter {letter.sequence}")
    assert entry.data["subject"] == "hw.tasks.none"
    assert "private" not in entry.model_dump_json()


LETTER = (
    b'{"stream":"HW_TASKS","subject":"hw.tasks.none","reason":"there is no saga","size":9,'
    b'"body":"\\"private\\"","headers":{"ce-id":"order 1"}}'
)


async def test_pages_go_through_acts_and_tasks_alike(world, client):
    task = await world.held()
    await client.cancel(task, "enough", by="ann")
    await client.set_limit("saga", "plain", concurrency=500, by="ann")
    await client.remove_limit("saga", "plain", by="ann")
    whole = [entry async for entry in client.audit()]
    assert {entry.task is None for entry in whole} == {True, False}
    assert [entry.at for entry in whole] == sorted(entry.at for entry in whole)
    assert [entry.kind for entry in whole if entry.task == task] == ["RecoveryStarted"]


async def test_acts_are_kept_as_they_are(world):
    for statement in ("UPDATE headway.acts SET who = 'me'", "DELETE FROM headway.acts"):
        with pytest.raises(Exception, match="it is append-only"):
            await world.fetch(statement)
