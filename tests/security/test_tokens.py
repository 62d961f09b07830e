"""API tokens: who is let in, what each role may, whose a task is, and how soon one is revoked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import orjson
import pytest
from harness.eventually import eventually
from harness.services import nats_in
from harness.system import System
from headway.agents import Client, Connection
from headway.agents.api import ERROR_CODE, TOKEN_HEADER
from headway.agents.errors import Conflict, InvalidInput, NotFound, Refused
from headway.agents.identity import new_task_id
from headway.agents.subjects import api_subject
from headway.coordinator.app import Coordinator
from headway.coordinator.errors import Refusal
from headway.coordinator.roles import NEEDS, OPERATE, ROLES, SUBMIT, VIEW, Need
from headway.coordinator.settings import Settings
from headway.coordinator.token_making import TokenMaking
from headway.coordinator.tokens import NEEDED, NOT_GOOD, digest_of, id_of, new_token

OPEN = {"number": 1, "a": "sleep=30"}


@asynccontextmanager
async def client_with(system: System, token: str) -> AsyncIterator[Client]:
    async with await Client.connect(system.nats.url, token=token) as client:
        yield client


# The table


async def test_every_operation_has_the_role_it_needs_in_the_table(
    running: list[Coordinator],
) -> None:
    offered = running[0]._api._offer.people
    assert set(NEEDS) == set(offered)
    assert all(need.role in ("", *ROLES) for need in NEEDS.values())


async def test_what_shows_tasks_to_role_submit_is_held_to_its_own(
    running: list[Coordinator],
) -> None:
    """Each operation that names a task or lists some, and that `submit` may ask for."""
    for name, serve in running[0]._api._offer.people.items():
        need = NEEDS[name]
        if not need.role or not need.is_met_by(SUBMIT):
            continue
        fields = serve.request.model_fields
        if need.own:
            assert need.own in fields, name
        elif name not in ("submit", "run"):
            assert not {"task", "owner"} & set(fields), name


def test_roles_are_ordered() -> None:
    for least, held, enough in [
        (VIEW, VIEW, True),
        (VIEW, OPERATE, True),
        (SUBMIT, VIEW, False),
        (SUBMIT, SUBMIT, True),
        (OPERATE, SUBMIT, False),
        ("", VIEW, True),
    ]:
        assert Need(least).is_met_by(held) is enough


async def test_documents_are_read_by_view_and_operate_and_kept_from_role_submit(
    system: System, running: list[Coordinator], making: TokenMaking
) -> None:
    """They say which task changed them, whosever it is."""
    tokens = {role: await making.create(f"{role}-reads", role) for role in ROLES}
    collection, one = {"collection": "orders"}, {"collection": "orders", "key": "one"}
    put = one | {"expected": 0, "body": {"paid": True}}
    for operation, request in [("collection", {"name": "orders"}), ("put", put)]:
        assert await asked(system, f"document.{operation}", request, tokens[OPERATE]) == (200, "")
    reading = {"get": one, "list": collection, "history": one, "changes": collection}
    for operation, request in reading.items():
        name = f"document.{operation}"
        for role in (VIEW, OPERATE):
            assert await asked(system, name, request, tokens[role]) == (200, ""), (name, role)
        assert await asked(system, name, request, tokens[SUBMIT]) == (
            403,
            f"token 'submit-reads' has role 'submit'; {name!r} needs 'view' or 'operate'",
        )


def test_a_token_has_a_public_part_and_256_random_bits() -> None:
    token_id, token = new_token()
    assert id_of(token) == token_id
    assert len(token.split("_", 2)[2]) == 43
    assert len(digest_of(token)) == 32
    assert id_of("nonsense") == id_of("") == id_of("hx_1_2") == ""


# Getting in


async def test_without_any_token_nobody_needs_one(
    system: System, running: list[Coordinator]
) -> None:
    receipt = await system.client.submit("linear", OPEN)
    assert (await system.client.status(receipt.task)).owner == ""


async def test_once_there_is_a_token_whoever_shows_none_is_refused(
    system: System, running: list[Coordinator], making: TokenMaking
) -> None:
    await making.create("ada", OPERATE)
    await eventually(lambda: refused_with(system.client.agents, NEEDED, 401), 2)
    with pytest.raises(Refused) as refused:
        await system.client.submit("linear", {})
    assert refused.value.code == 401
    assert str(refused.value) == (
        "a token is needed: `headway tokens create NAME --role ROLE` makes one; give it as "
        "HEADWAY_TOKEN, or Client(token=…)"
    )
    assert (await system.client.health()).status == "ok"


async def test_coordinators_may_require_tokens_before_there_are_any(
    postgres_url: str, tmp_path: Path
) -> None:
    nats = nats_in(tmp_path / "nats")
    await nats.start()
    settings = Settings(nats_url=nats.url, postgres_url=postgres_url, require_tokens=True)
    stop = asyncio.Event()
    coordinating = asyncio.create_task(Coordinator(settings).run(stop))
    try:
        async with await Client.connect(nats.url) as client:
            with pytest.raises(Refused, match="a token is needed"):
                await client.agents()
    finally:
        stop.set()
        await coordinating
        await nats.kill()


async def test_a_token_that_is_not_quite_right_is_refused(
    system: System, running: list[Coordinator], making: TokenMaking
) -> None:
    token = await making.create("ada", OPERATE)
    secret = token.split("_", 2)[2]
    other = "A" if token[-1] != "A" else "B"
    wrong = [
        token[:-1] + other,
        token[:-1],
        token + "A",
        f"hw_000000000000_{secret}",
        token.swapcase(),
        f"{token} ",
        "hw__",
        "x" * 10_000,
    ]
    for each in wrong[:-1] + wrong[-1:]:
        expected = (200, "") if each.strip() == token else (401, NOT_GOOD)
        assert await asked(system, "agents", {}, each) == expected, each
    assert NOT_GOOD == "this token is not good: it is mistyped, or was revoked"


@pytest.mark.parametrize(
    "token",
    [
        "hw_1_x\r\nNats-Msg-Id: 1",
        "hw_1_x\n",
        "hw_1_ ",
        "Bearer x",
        "\0",
        "hw_1_é",
        "hw_1_" + "x" * 9999,
    ],
)
def test_a_token_that_could_be_more_than_one_header_is_not_sent(token: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Client(cast(Connection, None), token=token)
    assert str(refused.value) == (
        "the token is not one: `headway tokens create` gives hw_<id>_<secret>"
    )


@pytest.mark.timed
async def test_a_revoked_token_is_refused_within_a_second(
    system: System, running: list[Coordinator], making: TokenMaking
) -> None:
    async with client_with(system, await making.create("ada", VIEW)) as ada:
        await making.create("op", OPERATE)
        await ada.agents()
        await making.revoke("ada")
        revoked_at = time.monotonic()
        await eventually(lambda: refused_with(ada.agents, NOT_GOOD, 401), 5)
        assert time.monotonic() - revoked_at < 1.0


async def test_when_the_last_token_is_revoked_nobody_needs_one_again(
    system: System, running: list[Coordinator], making: TokenMaking
) -> None:
    await making.create("ada", VIEW)
    await eventually(lambda: refused_with(system.client.agents, NEEDED, 401), 2)
    assert await making.revoke("ada") == 0

    async def let_in() -> bool:
        return not await refused_with(system.client.agents, NEEDED, 401)

    await eventually(let_in, 2)


async def test_names_are_taken_once_and_may_come_again_after_a_revocation(
    making: TokenMaking,
) -> None:
    first = await making.create("ada", VIEW)
    with pytest.raises(Refusal) as refused:
        await making.create("ada", OPERATE)
    assert refused.value.reason == "token 'ada' exists; revoke it first, or take another name"
    await making.revoke("ada")
    assert await making.create("ada", OPERATE) != first
    assert [(each.role, each.revoked_at is None) for each in await making.list()] == [
        (VIEW, False),
        (OPERATE, True),
    ]
    with pytest.raises(Refusal, match="no token 'bob' is good"):
        await making.revoke("bob")


@pytest.mark.parametrize("name", ["", " ", "a b", "a\n", "é", "-a", "a" * 65, "a\0", "'; drop"])
async def test_a_name_that_would_not_be_plain_in_a_history_is_refused(
    making: TokenMaking, name: str
) -> None:
    with pytest.raises(Refusal, match="cannot name a token"):
        await making.create(name, VIEW)


async def test_the_database_holds_no_token(making: TokenMaking, system: System) -> None:
    token = await making.create("ada", VIEW)
    [row] = await system.fetch("SELECT * FROM headway.tokens")
    secret = token.split("_", 2)[2]
    assert secret not in repr(dict(row))
    assert token.encode() not in bytes(row["digest"])


# Roles


async def test_a_role_that_is_too_small_is_told_which_one_is_needed(
    system: System, running: list[Coordinator], making: TokenMaking
) -> None:
    async with client_with(system, await making.create("eve", VIEW)) as eve:
        with pytest.raises(Refused) as refused:
            await eve.submit("linear", {})
    assert refused.value.code == 403
    assert str(refused.value) == "token 'eve' has role 'view'; 'submit' needs 'submit'"


async def test_each_operation_is_refused_to_every_smaller_role_and_let_through_for_the_others(
    system: System, running: list[Coordinator], making: TokenMaking
) -> None:
    """Let through: whatever comes of an empty request, it is no refusal for the role."""
    tokens = {role: await making.create(role, role) for role in ROLES}
    for operation in running[0]._api._offer.people:
        need = NEEDS[operation]
        for role, token in tokens.items():
            code, detail = await asked(system, operation, {}, token)
            if need.is_met_by(role):
                held = need.own == "task" and role == SUBMIT
                assert code not in (401, 403) or held, (operation, role, detail)
            else:
                expected = f"token {role!r} has role {role!r}; {operation!r} needs {need}"
                assert (code, detail) == (403, expected)


async def test_role_submit_sees_and_cancels_its_own_tasks_and_no_others(
    system: System, running: list[Coordinator], making: TokenMaking
) -> None:
    async with (
        client_with(system, await making.create("dora", SUBMIT)) as ada,
        client_with(system, await making.create("carl", SUBMIT)) as bob,
        client_with(system, await making.create("eve", VIEW)) as eve,
    ):
        hers, his = await ada.submit("linear", OPEN), await bob.submit("linear", OPEN)
        assert (await eve.status(hers.task)).owner == "dora"
        assert [each.owner for each in (await eve.list()).tasks][:2] == ["carl", "dora"]
        assert [each.task for each in (await ada.list()).tasks] == [hers.task]
        assert [each.task for each in (await ada.list(owner="carl")).tasks] == [hers.task]
        assert await ada.history(hers.task)
        for task in (hers.task, new_task_id()):
            for operation in ("get", "history", "cancel", "audit"):
                wanted = {"task": str(task), "wait_s": 5} if operation == "get" else {"task": task}
                answer = await asked(system, operation, wanted, bob._token)
                assert answer == (404, f"there is no task {task}")
        assert (await ada.cancel(hers.task)).reason
        assert (await bob.status(his.task)).status == "running"


async def test_role_submit_audits_its_own_tasks_one_by_one(
    system: System, running: list[Coordinator], making: TokenMaking
) -> None:
    async with client_with(system, await making.create("ada", SUBMIT)) as ada:
        hers = await ada.submit("linear", OPEN)
        await ada.cancel(hers.task, "changed my mind")
        code, detail = await asked(system, "audit", {}, ada._token)
        assert (code, detail) == (403, "role 'submit' must name one of its own tasks")
        code, _ = await asked(system, "audit", {"task": str(hers.task)}, ada._token)
        assert code == 200


# Whose it is


async def test_nothing_in_a_request_makes_a_task_somebody_elses(
    system: System, running: list[Coordinator], making: TokenMaking
) -> None:
    token = await making.create("ada", SUBMIT)
    task = str(new_task_id())
    forged = {
        "saga": "linear",
        "task": task,
        "input": {"owner": "bob", "number": 1},
        "attributes": {"owner": "bob"},
        "owner": "bob",
        "by": "bob",
    }
    code, _ = await asked(system, "submit", forged, token)
    if code != 200:  # or it says what does not belong there
        del forged["owner"], forged["by"]
        assert await asked(system, "submit", forged, token) == (200, "")
    [row] = await system.fetch("SELECT owner FROM headway.tasks WHERE id = $1", UUID(task))
    assert row["owner"] == "ada"


async def test_who_acted_is_the_tokens_name_in_history_and_audit(
    system: System, running: list[Coordinator], making: TokenMaking
) -> None:
    async with (
        client_with(system, await making.create("ada", SUBMIT)) as ada,
        client_with(system, await making.create("op", OPERATE)) as op,
    ):
        for who, name in ((ada, "ada"), (op, "op")):
            task = (await ada.submit("linear", OPEN)).task
            await who.cancel(task, "no", by="root")
            data = [entry.data for entry in await op.history(task)]
            audit = [entry async for entry in op.audit(task=task)]
            assert {each["by"] for each in data if each.get("by")} == {name}
            assert {entry.who for entry in audit} == {name}


async def test_a_document_says_who_wrote_it_by_the_token(
    system: System, running: list[Coordinator], making: TokenMaking
) -> None:
    token = await making.create("op", OPERATE)
    async with client_with(system, token) as op:
        await op.documents.collection("orders")
        put = {"collection": "orders", "key": "a", "expected": 0, "body": 1, "by": "somebody"}
        assert await asked(system, "document.put", put, token) == (200, "")
        history = await op.documents.history("orders", "a")
    assert [version.by for version in history] == ["op"]


async def test_an_id_that_another_has_taken_is_refused_even_with_the_same_body(
    system: System, running: list[Coordinator], making: TokenMaking
) -> None:
    async with (
        client_with(system, await making.create("ada", SUBMIT)) as ada,
        client_with(system, await making.create("bob", SUBMIT)) as bob,
    ):
        task = (await ada.submit("linear", OPEN)).task
        assert not (await ada.submit("linear", OPEN, task=task)).created
        with pytest.raises(Conflict) as refused:
            await bob.submit("linear", OPEN, task=task)
    assert str(refused.value) == f"task {task} exists and is not yours; take a new id"


# Plain publications


async def test_a_published_task_needs_the_header_and_is_kept_with_the_reason_without(
    system: System, running: list[Coordinator], making: TokenMaking
) -> None:
    before = len(await system.dead_letters())
    ada, eve = await making.create("ada", SUBMIT), await making.create("eve", VIEW)
    await eventually(lambda: refused_with(system.client.agents, NEEDED, 401), 2)
    async with client_with(system, ada) as client:
        task = await client.publish("linear", OPEN)
        await eventually(lambda: exists(client, task), 10)
        assert (await client.status(task)).owner == "ada"
    async with client_with(system, eve) as client:
        await client.publish("linear", OPEN)
    await system.client.publish("linear", OPEN)
    letters = await eventually(lambda: both_there(system, before), 10)
    assert sorted(letter["reason"] for letter in letters) == [
        NEEDED,
        "token 'eve' has role 'view'; 'submit' needs 'submit'",
    ]
    assert ada not in orjson.dumps(await system.dead_letters()).decode()


async def asked(
    system: System, operation: str, request: dict[str, Any], token: str
) -> tuple[int, str]:
    """The code and the detail of an answer, asked as any NATS client would."""
    answer = await system.client.connection.wire.request(
        api_subject(operation), orjson.dumps(request), 5, {TOKEN_HEADER: token}
    )
    code = int((answer.headers or {}).get(ERROR_CODE, "200"))
    return code, orjson.loads(answer.data)["detail"] if code != 200 else ""


async def refused_with(ask: Callable[[], Awaitable[Any]], reason: str, code: int) -> bool:
    try:
        await ask()
    except Refused as refused:
        return (str(refused), refused.code) == (reason, code)
    return False


async def exists(client: Client, task: Any) -> bool:
    try:
        await client.status(task)
    except NotFound:
        return False
    return True


async def both_there(system: System, before: int) -> list[dict[str, Any]]:
    letters = (await system.dead_letters())[before:]
    assert len(letters) == 2
    return letters
