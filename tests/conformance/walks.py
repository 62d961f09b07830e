"""Random statements, drawn from small worlds so that they often meet the same rows.

A walk keeps what it has read, and now and then uses what is out of date by now, or what no row has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from random import Random
from typing import Any
from uuid import UUID

import orjson
from headway.coordinator.records import Change, Loaded, NewTask
from headway.sagas import Phase, Saga, transition
from headway.sagas import inputs as i
from headway.sagas.codec import encode_task
from headway.sagas.deadlines import due
from headway.sagas.errors import ImpossibleInput
from headway.sagas.task import Claim, Failure

AT = 1_800_000_000_000
BEGINNING = datetime.fromtimestamp(0, UTC)
SAGA = (
    Saga("pair")
    .step("a", "x.a", compensate="x.undo_a")
    .step("b", "x.b", compensate="x.undo_b", after="a")
    .define()
)
WORDS = ("a", "b", "ü", "", "a\0b", "\ud800")
BODIES = (b"{}", b'{"x":"\\u0000"}', b"[1, 2]", b"null", b"{", b'{"x":NaN}', b'"\\ud800"', None)
MARKS = (b'{"arguments_digest":"d"}', b'{"arguments_digest":"e","size":2}', b"{}")

Call = tuple[str, tuple[Any, ...]]
"""A statement's name and its arguments."""


class Walk:
    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.at = AT
        self.tasks = [UUID(int=rng.getrandbits(128)) for _ in range(3)]
        self.uuids = [UUID(int=rng.getrandbits(128)) for _ in range(2)]
        self.seen: list[Loaded] = []  # tasks, at some time
        self.heads: dict[tuple[Any, ...], list[tuple[int, int, bool]]] = {}  # journals, likewise

    def draw(self) -> Call:
        """Any statement."""
        self.at += self.rng.choice((0, 1, 500))
        return self.rng.choice(_DRAWS)(self)

    def odd(self, usual: Sequence[Any], odd: Sequence[Any]) -> Any:
        return self.rng.choice(odd if self.rng.random() < 0.03 else usual)

    def word(self) -> str:
        return str(self.odd(WORDS[:3], WORDS))

    def words(self) -> str:
        """As `word`, but what can be written as JSON."""
        return self.word().replace("\ud800", "")

    def body(self) -> bytes | None:
        found: bytes | None = self.odd(BODIES[:3], BODIES)
        return found

    def task(self) -> UUID:
        return self.rng.choice(self.tasks)

    def uuid(self) -> UUID:
        return self.rng.choice(self.uuids)

    def place(self) -> tuple[UUID, str, str]:
        phase = self.odd(("action", "compensation"), ("action", "neither"))
        return self.task(), self.rng.choice(("a", "b")), phase

    def number(self) -> int:
        return int(self.odd((0, 1, 2, 3), (-1, 2**31 - 1, 2**31, 2**63)))

    def limit(self) -> int:
        return self.rng.choice((1, 2, 100))

    # Tasks

    def change(self) -> Change | None:
        """A change of a task as it was at some time; None if nothing would change."""
        if not self.seen or self.rng.random() < 0.2:
            return self._submission()
        loaded = self.rng.choice(self.seen[-6:])
        try:
            outcome = transition(SAGA, loaded.task, self._input(loaded))
        except ImpossibleInput:
            return None
        if not outcome.events:
            return None
        change = self._of(loaded.id, outcome, loaded.task.version)
        spoilt = replace(change, state=b"{") if self.rng.random() < 0.02 else change
        return replace(spoilt, due=None) if self.rng.random() < 0.02 else spoilt

    def _submission(self) -> Change:
        attributes = {self.words(): self.words() for _ in range(self.rng.randrange(3))}
        owner = self.rng.choice(("", "ann"))
        new = NewTask(
            self.task(), "pair", b'{"n": 1}', b"digest", attributes=attributes, owner=owner
        )
        version = self.odd((1,), (0, 9))
        change = self._of(new.id, transition(SAGA, None, i.Submit(self.at)), 0)
        return replace(change, new=new, saga_version=version)

    def _input(self, loaded: Loaded) -> i.Input:
        rng = self.rng
        step = rng.choice(("a", "b"))
        state = loaded.task.steps[step]
        phase, attempt, epoch = rng.choice(list(Phase)), state.attempt, state.epoch
        why = Failure("Down", "nobody\0knows")
        of = step, phase, attempt, epoch, why
        kinds = {"retryable": rng.random() < 0.5, "no_effect": rng.random() < 0.5}
        return rng.choice(
            (
                i.Succeeded(self.at, step, phase, attempt, {"k": "\0ü"}),
                i.Failed(self.at, *of, **kinds, hold=rng.random() < 0.5),
                i.Cancel(self.at, "ann", "changed\0my mind"),
                i.RetryStuck(self.at, "ann", "looked"),
                i.Tick(self.at + 60_000, 0.0),
                i.ClaimAsked(self.at, step, phase, attempt, Claim(epoch, 2, "w"), 0.0),
            )
        )

    def _of(self, task: UUID, outcome: Any, version: int) -> Change:
        state, timer = encode_task(outcome.task), due(SAGA, outcome.task)
        waits, events = outcome.task.parked, outcome.events
        return Change(
            *(task, version, outcome.task, state, timer, waits, self.at, events), saga_version=1
        )

    def reading_tasks(self) -> Call:
        rng, limit = self.rng, self.limit()
        before = rng.choice((None, self.task()))
        one = rng.choice((None, None, self.task()))
        times = [
            self.odd((None,), (datetime.fromtimestamp(self.at / 1000, UTC),)) for _ in range(2)
        ]
        statuses = rng.sample(("running", "parked", "compensated"), rng.randrange(4))
        narrowed = orjson.dumps({}).decode() if rng.random() < 0.9 else '{"a":"b"}'
        listing = (
            before,
            statuses,
            rng.choice((None, "pair", "none")),
            narrowed,
            *times,
            limit,
            rng.choice((None, "", "ann")),
            *rng.choice(((None, None), (["pair", "pair"], [1, 2]), (["pair"], [2]), ([], []))),
        )
        return rng.choice(
            (
                ("load_tasks", ([self.task(), self.task()],)),
                ("history", (self.task(), self.number(), limit)),
                ("list_tasks", listing),
                ("list_open_tasks", listing),
                ("count_by_saga", ()),
                (
                    "list_waiting_tasks",
                    (before, rng.choice((None, "pair", "none")), limit, None, one),
                ),
                ("owner_of_task", (self.task(),)),
                ("last_resumptions", ([self.task(), self.task()],)),
                ("open_tasks", (self.task(), limit, rng.choice((None, self.at)))),
                ("claim_due", (self.at + rng.choice((0, 60_000)), 5_000, 100)),
                ("postpone", ([self.task()], [self.number()], [self.at + 7])),
                ("latest_sagas", (["pair", self.word()],)),
                ("load_sagas", (["pair", "pair"], [1, self.number()])),
                ("register_saga", (self.word(), self.number(), self.word(), self.body(), self.at)),
                ("list_sagas", ()),
            )
        )

    # Journals

    def committing_journals(self) -> Call:
        places = {self.place(): None for _ in range(self.rng.choice((1, 1, 2)))}
        heads: list[tuple[Any, ...]] = []
        entries: list[tuple[Any, ...]] = []
        for number, place in enumerate(places, 1):
            epoch, seq, undoing = self.rng.choice(self.heads.get(place, [])[-3:] or [(0, 0, False)])
            count = self.rng.randrange(3)
            after = epoch + (epoch == 0 or self.rng.random() < 0.2)
            heads.append((*place, epoch, seq, undoing, *self._standing(after, seq + count)))
            entries += [
                (number, *place, after, "ag", *self._entry(seq + n + 1)) for n in range(count)
            ]
        return "commit_journals", (*_columns(heads, 20), self.at, *_columns(entries, 15))

    def _standing(self, epoch: int, seq: int) -> tuple[Any, ...]:
        key = self.rng.choice(("k", "l"))
        call = {"seq": self.rng.randrange(1, 4), "tool": "t", "signature": "s"}
        calls = orjson.dumps({key: call} if self.rng.random() < 0.7 else {})
        undoing = self.rng.random() < 0.1
        who = (self.number() % 5, 0, self.word(), self.word(), undoing, 1, 0)
        return (epoch, seq, *who, b"[]", calls, self.rng.randrange(9), 1, self.rng.random())

    def _entry(self, seq: int) -> tuple[Any, ...]:
        kind = self.odd(("intent", "result", "checkpoint", "note"), ("other", "void"))
        data = self.body()
        told = self.rng.choice(("", "ann")), self.rng.choice(("", "why"))
        key, marks = self.rng.choice(("k", "l")), self.rng.choice(MARKS)
        return (seq, kind, key, self.rng.choice(("", "t")), marks, data, *told, len(data or b""))

    def reading_journals(self) -> Call:
        place = self.place()
        size = self.rng.choice((1, 10, 10**6))
        places = [self.place(), self.place()]
        return self.rng.choice(
            (
                ("load_journals", tuple(_columns(places, 3))),
                ("load_journals", tuple(_columns(places, 3))),
                ("journal_page", (*place, self.number(), self.limit(), size)),
                ("journal_key", (*place, self.rng.choice(("k", "l", "m")))),
                ("unsettled_intents", ([self.task(), self.task()],)),
                ("usage_of_task", (self.task(),)),
            )
        )

    # Gates

    def gating(self) -> Call:
        rng, invocation = self.rng, self.uuid()
        latest = {each.id: each.task.version for each in self.seen}
        task, version = rng.choice(list(latest.items()) or [(self.task(), 1)])
        call = (*self.place()[1:], rng.choice(("k", "l")), self.word(), "digest")
        owner = rng.choice((None, None, "ann"))
        one = rng.choice((None, None, task))
        word, body, token = self.word(), self.body() or b"{}", self.uuid()
        key = bytes([rng.randrange(256)]) * self.odd((32,), (31,))
        decision = self.odd(("approved", "rejected"), ("open",))
        return rng.choice(
            (
                ("await_approval", (task, invocation, *call, self.at, word, body)),
                ("issue_token", (task, invocation, *call, token, self.at, word, body)),
                ("redeem_token", (task, version, invocation, token, self.uuid(), self.at, body)),
                ("token_use", (task, invocation, token)),
                (
                    "note_refusal",
                    (task, "a", self.at, word, "t", "why", rng.choice((None, token)), body),
                ),
                ("gate", (task, invocation)),
                ("gate_and_call", (*self.place(), rng.choice(("k", "l")), invocation)),
                ("decide_gate", (task, invocation, decision, word, "why", self.at, body)),
                (
                    "waiting_gates",
                    (rng.choice((None, "pair", "none")), self.limit(), 10, owner, one),
                ),
                ("signing_key", ()),
                ("keep_signing_key", (key, self.at)),
            )
        )

    # Documents

    def writing_documents(self) -> Call:
        names = {self.rng.choice(("c", "d")): None for _ in range(2)}
        checked = [(name, self.rng.choice((1, 1, 2))) for name in names]
        documents = {(name, self.word()): None for name in names for _ in range(2)}
        rows = []
        for document in documents:
            version = self.rng.choice((0, 1, 2))
            said = (self.body(), self.word(), self.rng.choice((None, self.uuid())), "by")
            rows.append((*document, version, version + 1, *said, None, "s"))
        return "write_documents", (*_columns(checked, 2), *_columns(rows, 10), self.at)

    def reading_documents(self) -> Call:
        rng, name, key = self.rng, self.rng.choice(("c", "d", "none")), self.word()
        before = [[name, "c"], [key, "a"], [name], [key], [self.uuid()]]
        body = self.body() or b"{}"
        return rng.choice(
            (
                ("register_collection", (rng.choice("cd"), rng.choice("12"), body, self.at)),
                ("newest_definitions", ([name, "c"],)),
                ("documents_before_writes", tuple(before)),
                ("document", (name, key)),
                ("document_version", (name, key, self.number())),
                ("list_documents", (name, self.word(), rng.choice(("", "a")), self.limit())),
                ("document_history", (name, key, self.number(), self.limit())),
                ("changes_of_collection", (name, self.number(), self.limit())),
                ("changes_of_document", (name, self.number(), key)),
            )
        )

    # Tokens

    def tokens(self) -> Call:
        rng, name = self.rng, self.rng.choice(("ann", "bob"))
        digest = b"d" * self.odd((32,), (31,))
        role = self.odd(("view", "submit", "operate"), ("god",))
        made = (rng.choice("1234"), name, role, digest, self.at, self.word())
        return rng.choice(
            (
                ("tokens", ()),
                ("make_token", made),
                ("revoke_token", (name, self.at, self.word())),
                ("command_secret", ()),
                ("keep_command_secret", (digest, self.at)),
            )
        )

    # What is kept of all of it

    def auditing(self) -> Call:
        rng = self.rng
        until = datetime.fromtimestamp(self.at / 1000 + rng.choice((-1, 1)), UTC)
        since = datetime.fromtimestamp(AT / 1000 + rng.choice((0, 10)), UTC)
        asked = (since, until, BEGINNING, UUID(int=0), "", self.limit())
        if rng.random() < 0.5:
            return "audit", asked
        return "audit_of_task", (*asked, self.task())

    def noting_streams(self) -> Call:
        if self.rng.random() < 0.5:
            return "stream_identities", ()
        return "save_stream_identity", (self.word(), self.word())


_DRAWS = (
    *(Walk.reading_tasks, Walk.reading_tasks, Walk.committing_journals, Walk.committing_journals),
    *(Walk.reading_journals, *(3 * (Walk.gating,)), *(2 * (Walk.writing_documents,))),
    *(
        Walk.reading_documents,
        Walk.reading_documents,
        Walk.tokens,
        Walk.auditing,
        Walk.noting_streams,
    ),
)


def _columns(rows: Sequence[tuple[Any, ...]], width: int) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[]] * width
