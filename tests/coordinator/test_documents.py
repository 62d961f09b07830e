"""Documents through real servers and two coordinators, which answer in turn."""

from __future__ import annotations

import asyncio
import itertools
import random
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from uuid import uuid4

import asyncpg
import orjson
import pytest
import pytest_asyncio
from harness.coordination import coordinators
from harness.eventually import eventually
from harness.services import RunningNats, Servers
from headway.agents import Conflict, Connection, InvalidInput, NotFound, Refused, connect
from headway.agents import documents as documents_module
from headway.agents.api import call
from headway.agents.document_views import BODY_MAX_BYTES, DocumentChange, Transitions
from headway.agents.documents import Documents, VersionConflict
from headway.coordinator.document_writes import DocumentWrites
from headway.coordinator.documenting import Write
from headway.coordinator.errors import Refusal, StoreRefused
from headway.coordinator.queries import QUERIES
from headway.coordinator.rulebook import Rulebook
from headway.coordinator.store import Store
from pydantic import BaseModel

pytestmark = pytest.mark.asyncio(loop_scope="module")

STAGES = Transitions(
    field="status",
    initial=["new", "draft"],
    legal={"draft": ["new"], "new": ["paid", "cancelled"], "paid": ["sent"]},
)
SCHEMA = {
    "type": "object",
    "properties": {"total": {"type": "integer"}, "lines": {"items": {"required": ["sku"]}}},
    "required": ["total"],
}
EMPTY_DIGEST = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"  # of {}

_numbers = itertools.count(1)


@dataclass
class Place:
    """Two coordinators, and what a client needs."""

    nats: RunningNats
    postgres_url: str
    connection: Connection
    docs: Documents

    async def fetch(self, statement: str):
        connection = await asyncpg.connect(self.postgres_url)
        try:
            return await connection.fetch(statement)
        finally:
            await connection.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place(module_servers: Servers) -> AsyncIterator[Place]:
    nats, url, _ = module_servers
    async with coordinators(nats.url, url, 2), await connect(nats.url, name="test") as connection:
        docs = Documents(connection, by="ann@desk")
        await eventually(lambda: docs.collection("ready"), 15, what="a coordinator answers")
        yield Place(nats, url, connection, docs)


@pytest.fixture
def docs(place: Place) -> Documents:
    return place.docs


@pytest_asyncio.fixture(loop_scope="module")
async def notes(docs: Documents) -> str:
    """A collection without rules, of the test's own."""
    name = f"notes-{next(_numbers)}"
    await docs.collection(name)
    return name


@pytest_asyncio.fixture(loop_scope="module")
async def orders(docs: Documents) -> str:
    """A collection with legal transitions, of the test's own."""
    name = f"orders-{next(_numbers)}"
    await docs.collection(name, transitions=STAGES)
    return name


async def test_a_document_is_made_changed_and_read_at_each_version(docs, notes):
    first = await docs.put(notes, "a/ü *", {"b": [1, 2.5, None], "a": "x"}, expected=0)
    second = await docs.put(notes, "a/ü *", None, expected=1)
    assert (first.version, second.version) == (1, 2)
    now = await docs.get(notes, "a/ü *")
    assert (now.version, now.body, now.digest, now.at) == (2, None, second.digest, second.at)
    before = await docs.get(notes, "a/ü *", version=1)
    assert (before.version, before.body) == (1, {"b": [1, 2.5, None], "a": "x"})


async def test_the_digest_is_of_the_content_not_of_the_order_of_keys(docs, notes):
    one = await docs.put(notes, "one", {"a": 1, "b": 2}, expected=None)
    other = await docs.put(notes, "other", {"b": 2, "a": 1}, expected=None)
    empty = await docs.put(notes, "empty", {}, expected=None)
    assert one.digest == other.digest
    assert empty.digest == EMPTY_DIGEST


async def test_a_model_becomes_json(docs, notes):
    class Note(BaseModel):
        text: str

    await docs.put(notes, "a", Note(text="hello"), expected=None)
    assert (await docs.get(notes, "a")).body == {"text": "hello"}


async def test_a_conflict_carries_the_current_version_and_digest(docs, notes):
    await docs.put(notes, "a", {"n": 1}, expected=None)
    second = await docs.put(notes, "a", {}, expected=None)
    for write in (docs.put(notes, "a", {"n": 3}, expected=1), docs.delete(notes, "a", expected=1)):
        with pytest.raises(VersionConflict) as caught:
            await write
        assert str(caught.value) == (
            f"document 'a' of collection '{notes}' is at version 2, not 1: read it again"
        )
        assert (caught.value.code, caught.value.kind) == (409, "version-conflict")
        assert (caught.value.current_version, caught.value.current_digest) == (2, EMPTY_DIGEST)
    assert (await docs.get(notes, "a")).digest == second.digest


async def test_a_conflict_is_machine_readable_on_the_wire(place, notes):
    await place.docs.put(notes, "a", {}, expected=0)
    request = {"collection": notes, "key": "a", "body": 1, "expected": 0}
    answer = await call(place.connection, "hw.api.document.put", orjson.dumps(request), 5)
    assert orjson.loads(answer) == {
        "written": None,
        "conflict": {
            "current_version": 1,
            "current_digest": EMPTY_DIGEST,
            "detail": f"document 'a' of collection '{notes}' is there already, at version 1",
        },
    }


async def test_a_version_of_a_document_that_is_not_there_is_a_conflict(docs, notes):
    with pytest.raises(VersionConflict) as caught:
        await docs.put(notes, "a", 1, expected=3)
    assert str(caught.value) == (
        f"document 'a' of collection '{notes}' is not there, so it is not at version 3"
    )
    assert (caught.value.current_version, caught.value.current_digest) == (0, "")


async def test_a_deleted_document_is_gone_and_may_come_again_with_later_versions(docs, notes):
    await docs.put(notes, "a", 1, expected=0)
    assert (await docs.delete(notes, "a", expected=1)).version == 2
    for reading in (docs.get(notes, "a"), docs.get(notes, "a", version=2)):
        with pytest.raises(NotFound) as caught:
            await reading
        assert str(caught.value) == (
            f"document 'a' of collection '{notes}' was deleted, as version 2"
        )
    with pytest.raises(NotFound, match="was deleted, as version 2"):
        await docs.delete(notes, "a", expected=None)
    with pytest.raises(VersionConflict, match="is not there, so it is not at version 2"):
        await docs.put(notes, "a", 2, expected=2)
    assert (await docs.put(notes, "a", 2, expected=0)).version == 3
    versions = await docs.history(notes, "a")
    assert [(each.version, each.body, each.deleted) for each in versions] == [
        (1, 1, False),
        (2, None, True),
        (3, 2, False),
    ]


async def test_the_history_keeps_every_version_and_who_wrote_it(place, notes):
    task, operation = uuid4(), uuid4()
    agent = Documents(place.connection, task=task, step="charge")
    await place.docs.put(notes, "a", {"n": 1}, expected=0)
    await agent.put(notes, "a", {"n": 2}, expected=1, operation=operation)
    first, second = await place.docs.history(notes, "a")
    assert (first.body, first.by, first.task, first.step) == ({"n": 1}, "ann@desk", None, "")
    assert (second.body, second.by, second.task, second.step) == ({"n": 2}, "", task, "charge")
    assert second.operation == operation
    assert abs(second.at - first.at) < timedelta(seconds=5)  # the clock may have been set meanwhile


async def test_a_long_history_comes_in_pages(docs, notes):
    for number in range(60):
        await docs.put(notes, "a", number, expected=number)
    versions = await docs.history(notes, "a")
    assert [each.body for each in versions] == list(range(60))


@pytest.mark.parametrize("change", ["UPDATE {} SET by = 'nobody'", "DELETE FROM {}"])
async def test_what_was_written_cannot_be_rewritten(place, notes, change):
    await place.docs.put(notes, "a", 1, expected=0)
    with pytest.raises(asyncpg.RaiseError) as caught:
        await place.fetch(change.format("headway.document_versions"))
    assert str(caught.value) == (
        f"versions of documents are kept as they are: {change.partition(' ')[0]} is refused"
    )


async def test_what_is_not_there_is_said_in_words(docs, notes):
    absent = "there is no collection 'absent'; register it first (headway document collection)"
    missing = f"there is no document 'a' in collection '{notes}'"
    for asking, words in (
        (docs.get("absent", "a"), absent),
        (docs.get("absent", "a", version=1), absent),
        (docs.put("absent", "a", 1, expected=None), absent),
        (docs.delete("absent", "a", expected=None), absent),
        (docs.update("absent", "a", lambda _: 1), absent),
        (docs.list("absent"), absent),
        (docs.history("absent", "a"), absent),
        (anext(docs.watch("absent")), absent),
        (anext(docs.watch("absent", "a")), absent),
        (docs.get(notes, "a"), missing),
        (docs.delete(notes, "a", expected=None), missing),
        (docs.history(notes, "a"), missing),
        (docs.get(notes, "a", version=7), f"document 'a' of collection '{notes}' has no version 7"),
    ):
        with pytest.raises(NotFound) as caught:
            await asking
        assert str(caught.value) == words


async def test_a_document_begins_and_moves_only_as_is_legal(docs, orders):
    with pytest.raises(Conflict) as caught:
        await docs.put(orders, "a", {"status": "paid"}, expected=0)
    assert str(caught.value) == (
        f"document 'a' of collection '{orders}': status may not begin as 'paid'; "
        "legal is 'new', 'draft'"
    )
    assert (caught.value.code, caught.value.kind) == (409, "illegal-transition")
    await docs.put(orders, "a", {"status": "new"}, expected=0)
    await docs.put(orders, "a", {"status": "new", "note": "the same state"}, expected=1)
    for status, words in (
        ("sent", "from 'new' to 'sent'; legal from there is 'paid', 'cancelled'"),
        ("draft", "from 'new' to 'draft'; legal from there is 'paid', 'cancelled'"),
    ):
        with pytest.raises(Conflict) as caught:
            await docs.put(orders, "a", {"status": status}, expected=None)
        assert str(caught.value) == (
            f"document 'a' of collection '{orders}': status may not go {words}"
        )
    for status in ("paid", "sent"):
        await docs.put(orders, "a", {"status": status}, expected=None)
    with pytest.raises(Conflict, match=r"from 'sent' to 'new'; legal from there is nothing$"):
        await docs.put(orders, "a", {"status": "new"}, expected=None)
    assert [each.body["status"] for each in await docs.history(orders, "a")] == [
        *("new", "new", "paid", "sent"),
    ]


async def test_an_update_to_what_is_not_legal_is_refused_and_not_tried_again(docs, orders):
    await docs.put(orders, "a", {"status": "new"}, expected=0)
    calls = []
    with pytest.raises(Conflict) as caught:
        await docs.update(orders, "a", lambda body: calls.append(body) or {"status": "sent"})
    assert caught.value.kind == "illegal-transition"
    assert calls == [{"status": "new"}]


@pytest.mark.parametrize("body", [{}, {"status": 7}, ["new"], None])
async def test_a_document_without_a_state_does_not_fit(docs, orders, body):
    with pytest.raises(InvalidInput) as caught:
        await docs.put(orders, "a", body, expected=0)
    assert str(caught.value) == (
        f"document 'a' does not fit collection '{orders}': "
        "status: it must be there and be a string, the state"
    )


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ({"total": "secret"}, 'total: the value is not of type "integer"'),
        ({}, 'body: "total" is a required property'),
        ({"total": 1, "lines": [{"sku": 1}, {}]}, 'lines.1: "sku" is a required property'),
        ("secret", 'body: the value is not of type "object"'),
    ],
)
async def test_a_document_that_does_not_fit_the_schema_is_refused_with_the_field(
    docs, body, complaint
):
    await docs.collection("invoices", schema=SCHEMA)
    with pytest.raises(InvalidInput) as caught:
        await docs.put("invoices", "a", body, expected=0)
    assert str(caught.value) == f"document 'a' does not fit collection 'invoices': {complaint}"


async def test_other_rules_make_a_new_version_and_hold_from_then_on(place, docs, notes):
    again = [await docs.collection(notes) for _ in range(3)]
    assert {view.version for view in again} == {1}
    await docs.put(notes, "a", {"total": "many"}, expected=0)
    stricter = await docs.collection(notes, schema=SCHEMA)
    assert stricter.version == 2
    assert (await docs.get(notes, "a")).body == {"total": "many"}
    for _ in range(4):  # whichever coordinator answers
        with pytest.raises(InvalidInput, match="total: the value is not of type"):
            await docs.put(notes, "a", {"total": "more"}, expected=1)
    assert (await docs.put(notes, "a", {"total": 1}, expected=1)).version == 2
    assert (await docs.collection(notes)).version == 3
    await docs.put(notes, "a", {"total": "any"}, expected=2)
    rows = await place.fetch(
        f"SELECT definition FROM headway.document_versions WHERE collection = '{notes}'"
        " ORDER BY version"
    )
    assert [row["definition"] for row in rows] == [1, 2, 3]


async def test_rules_that_cannot_be_are_refused(docs):
    for asking, words in (
        (docs.collection("a b"), "name: 'a b' cannot be a subject token: "),
        (docs.collection("c", schema={"type": "what"}), "body_schema is not a JSON Schema: "),
        (
            docs.collection("c", schema={"$ref": "https://example.org/order.json"}),
            "body_schema is not a JSON Schema: ",
        ),
        (
            docs.collection("c", schema={"description": "x" * BODY_MAX_BYTES}),
            "the definition has 262208 bytes, more than 262144 (256 KiB)",
        ),
    ):
        with pytest.raises(InvalidInput) as caught:
            await asking
        assert str(caught.value).startswith(words)


async def test_a_write_is_carried_out_once_for_its_operation(docs, notes):
    operation = uuid4()
    first = await docs.put(notes, "a", {"n": 1}, expected=0, operation=operation)
    await docs.put(notes, "a", {"n": 2}, expected=1)
    again = await docs.put(notes, "a", {"n": 1}, expected=0, operation=operation)
    assert again == first.model_copy(update={"repeated": True})
    assert (await docs.get(notes, "a")).body == {"n": 2}
    assert len(await docs.history(notes, "a")) == 2
    elsewhere = await docs.put(notes, "b", {"n": 1}, expected=0, operation=operation)
    assert (elsewhere.version, elsewhere.repeated) == (1, False)


async def test_an_update_is_carried_out_once_for_its_operation(docs, notes):
    operation = uuid4()
    await docs.put(notes, "a", 10, expected=0)
    first = await docs.update(notes, "a", lambda n: n + 1, operation=operation)
    await docs.update(notes, "a", lambda n: n + 100)
    again = await docs.update(notes, "a", lambda n: n + 1, operation=operation)
    assert again == first
    assert (first.version, first.body) == (2, 11)
    assert (await docs.get(notes, "a")).body == 111


async def test_a_delete_is_carried_out_once_for_its_operation(docs, notes):
    operation = uuid4()
    await docs.put(notes, "a", 1, expected=0)
    first = await docs.delete(notes, "a", expected=None, operation=operation)
    await docs.put(notes, "a", 2, expected=0)
    again = await docs.delete(notes, "a", expected=None, operation=operation)
    assert again == first.model_copy(update={"repeated": True})
    assert (await docs.get(notes, "a")).body == 2


async def test_the_same_write_asked_of_both_coordinators_at_once_is_carried_out_once(docs, notes):
    for key in ("a", "b", "c", "d"):
        operation = uuid4()
        asked = (docs.put(notes, key, 1, expected=None, operation=operation) for _ in range(8))
        answers = await asyncio.gather(*asked)
        assert [answer.version for answer in answers] == [1] * 8
        assert sorted(answer.repeated for answer in answers) == [False] + [True] * 7
        assert len(await docs.history(notes, key)) == 1


async def test_two_clients_that_hammer_one_document_lose_no_update(place, notes):
    async def hammer(client: Documents) -> None:
        for _ in range(100):
            await client.update(notes, "counter", lambda n: (n or 0) + 1)

    async with await connect(place.nats.url, name="other") as other:
        await asyncio.gather(hammer(place.docs), hammer(Documents(other)))
    assert (await place.docs.get(notes, "counter")).body == 200
    versions = await place.docs.history(notes, "counter")
    assert [(each.version, each.body) for each in versions] == [(n, n) for n in range(1, 201)]


async def test_an_update_that_others_always_overtake_gives_up_and_says_so(docs, notes, monkeypatch):
    monkeypatch.setattr(documents_module, "UPDATE_TRIES_MAX", 3)
    get = docs.get

    async def overtaken(collection, key, **options):
        document = await get(collection, key, **options)
        await docs.put(notes, "a", {}, expected=None)
        return document

    monkeypatch.setattr(docs, "get", overtaken)
    await docs.put(notes, "a", {}, expected=0)
    with pytest.raises(VersionConflict) as caught:
        await docs.update(notes, "a", lambda body: body)
    assert str(caught.value) == (
        f"document 'a' of collection '{notes}' was changed by others during each of 3 tries to "
        "update it: try again later, or let fewer write to it"
    )
    assert (caught.value.current_version, caught.value.current_digest) == (4, EMPTY_DIGEST)


async def test_many_writes_to_many_collections_at_once_all_go_through(docs):
    seed = random.SystemRandom().randrange(1 << 32)
    sys.stdout.write(f"seed: {seed}\n")
    rng = random.Random(seed)
    names = [f"many-{number}" for number in range(5)]
    for name in names:
        await docs.collection(name)
    places = [(name, f"key {number}") for name in names for number in range(60)]
    for expected in (0, 1, None):
        rng.shuffle(places)
        writes = (docs.put(*where, where[1], expected=expected) for where in places)
        answers = await asyncio.gather(*writes)
        assert {answer.version for answer in answers} == {3 if expected is None else expected + 1}
    for name in names:
        assert len((await docs.list(name)).documents) == 60


async def test_a_write_that_postgresql_refuses_takes_no_other_with_it(place, notes):
    class Picky(Store):
        async def fetch(self, name, *arguments):
            if name == "write_documents" and "poison" in arguments[3]:
                raise StoreRefused("DataError: it tastes bad")
            return await super().fetch(name, *arguments)

    store, told = Picky(place.postgres_url), []
    writes = DocumentWrites(store, Rulebook(store), lambda subject, _: told.append(subject), int)
    keys = ("first", "a", "poison", "b")  # the others wait for the first, and are a batch
    answers = await asyncio.gather(
        *(writes.write(Write(notes, key, 0, body=b"1", value=1)) for key in keys),
        return_exceptions=True,
    )
    await store.close()
    assert str(answers.pop(2)) == "DataError: it tastes bad"
    assert [answer.written.version for answer in answers] == [1, 1, 1]
    assert len(told) == 3


async def test_rules_that_change_while_a_write_is_decided_hold_for_it(place, notes):
    class Late(Store):
        async def fetch(self, name, *arguments):
            if name == "write_documents" and not stricter:
                stricter.append(await place.docs.collection(notes, schema=SCHEMA))
            return await super().fetch(name, *arguments)

    store, stricter = Late(place.postgres_url), []
    writes = DocumentWrites(store, Rulebook(store), lambda *_: None, int)
    with pytest.raises(Refusal) as caught:
        await writes.write(Write(notes, "a", 0, body=b"{}", value={}))
    await store.close()
    assert caught.value.reason == (
        f"document 'a' does not fit collection '{notes}': body: \"total\" is a required property"
    )


async def test_whoever_writes_to_a_collection_waits_for_who_is_writing_to_it(place, notes):
    """So that no revision becomes visible after a later one, and a watch misses none."""
    one = await asyncpg.connect(place.postgres_url)
    transaction = one.transaction()
    await transaction.start()
    document = ([notes], ["a"], [0], [1], ["1"], ["digest"])
    who = ([None], [""], [None], [""])
    await one.fetch(QUERIES["write_documents"], [notes], [1], *document, *who, 1)
    other = asyncio.create_task(place.docs.put(notes, "b", 2, expected=0))

    async def waits() -> bool:
        [row] = await place.fetch("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(row["count"])

    await eventually(waits, what="a write that waits")
    assert not other.done()
    await transaction.commit()
    await one.close()
    await other
    watch = place.docs.watch(notes)
    assert [(await anext(watch)).key, (await anext(watch)).key] == ["a", "b"]
    await watch.aclose()


async def test_keys_are_listed_by_prefix_in_the_order_of_their_bytes_a_page_at_a_time(docs, notes):
    top = "\U0010ffff"
    keys = ["A", "a", "a%", "a/1", "a/2", f"a{top}", f"a{top}{top}z", "b", "ü", "日本", "🙂"]
    for key in random.Random(1).sample([*keys, "gone"], len(keys) + 1):
        await docs.put(notes, key, key, expected=0)
    await docs.delete(notes, "gone", expected=1)
    assert sorted(keys, key=str.encode) == keys

    async def listed(prefix: str, limit: int) -> list[str]:
        found, after = [], ""
        while True:
            page = await docs.list(notes, prefix, after=after, limit=limit)
            assert len(page.documents) <= limit
            found += [row.key for row in page.documents]
            if page.after is None:
                return found
            after = page.after

    assert await listed("", 500) == keys
    assert await listed("", 4) == keys
    assert await listed("a", 2) == [key for key in keys if key.startswith("a")]
    assert await listed(f"a{top}", 1) == [f"a{top}", f"a{top}{top}z"]
    assert await listed("%", 5) == []


LARGE = (
    "the document has 262146 bytes, more than 262144 (256 KiB); "
    "keep it elsewhere and put a reference to it"
)
NOT_JSON = "the document cannot be written as JSON: NotPlain: "
TOKEN_WORDS = "'a b' cannot be a subject token: use 1 to 64 of A-Z a-z 0-9 _ and -"


@pytest.mark.parametrize(
    ("key", "body", "words"),
    [
        ("", 1, "key: String should have at least 1 character"),
        ("k" * 513, 1, "key: String should have at most 512 characters"),
        ("a\0b", 1, "key: a NUL character cannot be stored"),
        ("a", "x" * BODY_MAX_BYTES, LARGE),
        ("a", float("nan"), f"{NOT_JSON}a number is not finite"),
        ("a", 1 << 64, f"{NOT_JSON}Integer exceeds 64-bit range"),
        ("a", orjson.loads("[" * 65 + "]" * 65), f"{NOT_JSON}nested more than 64 deep"),
    ],
    ids=["no key", "a long key", "NUL", "too large", "NaN", "65 bits", "too deep"],
)
async def test_what_cannot_be_stored_is_refused_before_it_is_sent(docs, notes, key, body, words):
    with pytest.raises(InvalidInput) as caught:
        await docs.put(notes, key, body, expected=None)
    assert str(caught.value) == words


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"collection": "a b"}, f"collection: {TOKEN_WORDS}"),
        ({"key": "k" * 513}, "key: String should have at most 512 characters"),
        ({"by": "\0"}, "by: a NUL character cannot be stored"),
        ({"step": "s" * 201}, "step: String should have at most 200 characters"),
        ({"expected": -1}, "expected: Input should be greater than or equal to 0"),
        ({"operation": "x"}, "operation: Input should be a valid UUID, "),
        ({"body": "x" * BODY_MAX_BYTES}, LARGE),
        ({"body": 1 << 64}, "body: Integer exceeds 64-bit range"),
        ({"nonsense": 1}, "nonsense: Extra inputs are not permitted"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
async def test_a_coordinator_refuses_what_a_careless_client_sends(place, notes, fields, words):
    request = {"collection": notes, "key": "a", "body": 1, "expected": None} | fields
    body = str(request).replace("'", '"').replace("None", "null").replace("\\x00", "\\u0000")
    with pytest.raises(InvalidInput) as caught:
        await call(place.connection, "hw.api.document.put", body.encode(), 5)
    assert str(caught.value).startswith(words)


async def test_a_write_must_say_what_it_expects(place, notes):
    body = orjson.dumps({"collection": notes, "key": "a", "body": 1})
    with pytest.raises(InvalidInput) as caught:
        await call(place.connection, "hw.api.document.put", body, 5)
    assert str(caught.value) == "expected: Field required"


async def test_a_body_of_the_largest_size_is_kept_and_read(docs, notes):
    body = "x" * (BODY_MAX_BYTES - 2)
    await docs.put(notes, "k" * 512, body, expected=0)
    assert (await docs.get(notes, "k" * 512)).body == body


async def test_a_nul_in_a_body_is_kept(docs, orders):
    body = {"status": "new", "text": "a\0b"}
    await docs.put(orders, "a", body, expected=0)
    await docs.put(orders, "a", body | {"status": "paid"}, expected=1)
    assert (await docs.get(orders, "a")).body == body | {"status": "paid"}


class Watcher:
    """Takes down what a watch reports, and checks that no version comes twice or too late."""

    def __init__(self, docs: Documents, collection: str, key: str | None = None) -> None:
        self.changes: list[DocumentChange] = []
        self._latest: dict[str, int] = {}
        self._task = asyncio.create_task(self._watch(docs, collection, key))

    async def _watch(self, docs: Documents, collection: str, key: str | None) -> None:
        async for change in docs.watch(collection, key):
            assert change.version > self._latest.get(change.key, 0)
            self._latest[change.key] = change.version
            self.changes.append(change)

    async def saw(self, key: str, version: int, within_s: float = 10.0) -> DocumentChange:
        await eventually(
            lambda: self._task.done() or self._latest.get(key) == version,
            within_s,
            what=f"news of {key!r} at version {version}",
        )
        assert not self._task.done(), self._task
        return next(c for c in self.changes if (c.key, c.version) == (key, version))

    async def end(self) -> None:
        self._task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await self._task


async def test_a_watch_tells_of_each_document_as_it_is_and_of_each_change(docs, notes):
    await docs.put(notes, "old", {"n": 1}, expected=0)
    await docs.put(notes, "gone", 1, expected=0)
    await docs.delete(notes, "gone", expected=1)
    watcher = Watcher(docs, notes)
    assert (await watcher.saw("old", 1)).body == {"n": 1}
    await docs.put(notes, "new", 7, expected=0)
    assert (await watcher.saw("new", 1)).body == 7
    await docs.delete(notes, "old", expected=1)
    last = await watcher.saw("old", 2)
    assert (last.deleted, last.body) == (True, None)
    await watcher.end()
    assert "gone" not in {change.key for change in watcher.changes}
    revisions = [change.revision for change in watcher.changes]
    assert revisions == sorted(set(revisions))


async def test_a_watch_of_one_document_tells_of_no_other(docs, notes):
    watcher = Watcher(docs, notes, "a")
    for version in range(3):
        await docs.put(notes, "b", version, expected=version)
        await docs.put(notes, "a", version, expected=version)
        await watcher.saw("a", version + 1)
    await docs.delete(notes, "a", expected=3)
    assert (await watcher.saw("a", 4)).deleted
    await watcher.end()
    assert [(c.key, c.version) for c in watcher.changes] == [("a", n) for n in (1, 2, 3, 4)]


async def test_a_watch_that_begins_with_much_tells_of_all_of_it_once(docs, notes):
    count = 130
    await asyncio.gather(*(docs.put(notes, f"{n}", n, expected=0) for n in range(count)))
    watcher = Watcher(docs, notes)
    await eventually(lambda: len(watcher.changes) == count)
    await docs.put(notes, "7", "again", expected=1)
    await watcher.saw("7", 2)
    await watcher.end()
    assert len(watcher.changes) == count + 1


async def test_news_is_heard_at_once_and_missed_news_is_made_up_for(docs, notes, monkeypatch):
    monkeypatch.setattr(documents_module, "POLL_S", 60.0)
    heard = Watcher(docs, notes)
    await docs.put(notes, "a", 1, expected=0)
    await heard.saw("a", 1, 5.0)
    await docs.put(notes, "a", 2, expected=1)
    await heard.saw("a", 2, 5.0)
    await heard.end()
    monkeypatch.setattr(documents_module, "POLL_S", 0.05)
    monkeypatch.setattr(documents_module, "documents_of", lambda _: "hw.documents.elsewhere.*")
    deaf = Watcher(docs, notes)
    await docs.put(notes, "a", 3, expected=2)
    await deaf.saw("a", 3)
    await docs.put(notes, "a", 4, expected=3)
    await deaf.saw("a", 4)
    await deaf.end()


async def test_news_names_the_document_but_not_its_body(place, notes):
    heard: list[bytes] = []
    sid = await place.connection.wire.subscribe(
        f"hw.documents.{notes}.*", lambda _subject, _reply, _headers, body: heard.append(body)
    )
    await place.connection.wire.flush()
    await place.docs.put(notes, "a.b *", "secret", expected=0)
    await eventually(lambda: heard)
    await place.connection.wire.unsubscribe(sid)
    assert [orjson.loads(body) for body in heard] == [
        {"collection": notes, "key": "a.b *", "version": 1, "deleted": False}
    ]


async def test_a_watch_that_is_cancelled_leaves_no_subscription_behind(place, notes):
    before = dict(place.connection.wire._subscriptions)
    watcher = Watcher(place.docs, notes)
    await place.docs.put(notes, "a", 1, expected=0)
    await watcher.saw("a", 1)
    assert len(place.connection.wire._subscriptions) == len(before) + 1
    await watcher.end()
    assert place.connection.wire._subscriptions == before


async def test_a_watch_goes_on_after_a_restart_of_nats_and_misses_nothing(place, notes):
    docs = place.docs
    watcher, one = Watcher(docs, notes), Watcher(docs, notes, "a")
    await docs.put(notes, "a", 1, expected=0)
    await watcher.saw("a", 1)
    await place.nats.restart()
    for version in range(1, 6):
        await docs.put(notes, "a", version, expected=version)
        await docs.put(notes, f"b{version}", version, expected=0)
    await watcher.saw("a", 6)
    await watcher.saw("b5", 1)
    await one.saw("a", 6)
    await watcher.end()
    await one.end()
    assert {change.key for change in watcher.changes} == {"a", *(f"b{n}" for n in range(1, 6))}


async def test_an_answer_that_is_not_understood_is_not_taken_for_success(docs, notes, monkeypatch):
    async def nothing(*_arguments, **_named):
        return documents_module.WriteOutcome()

    monkeypatch.setattr(docs, "ask", nothing)
    with pytest.raises(Refused) as caught:
        await docs.put(notes, "a", 1, expected=0)
    assert str(caught.value) == "the coordinator says neither what was written nor why not"
