"""What comes again and finds its work done: the first time may have ended before the publishing."""

from __future__ import annotations

from datetime import UTC, datetime

from headway.agents.identity import new_task_id
from headway.coordinator.decisions import decide
from headway.coordinator.engine import Engine
from headway.coordinator.errors import StoreUnavailable
from headway.coordinator.family import Family
from headway.coordinator.intake import Item
from headway.coordinator.records import Loaded, NewTask
from headway.coordinator.schemas import InputCheck
from headway.sagas import Phase, Saga
from headway.sagas import inputs as i

SAGA = (
    Saga("s")
    .step("a", "left.do", compensate="left.undo")
    .step("b", "left.do", compensate="left.undo")
    .define()
)
TASK = new_task_id()
NOW = datetime.fromtimestamp(0, UTC)
CHECK = InputCheck().check


def decided(items, before=None):
    return decide(items, before, {("s", None): SAGA}, CHECK)


def success(step, repeated=False):
    happened = i.Succeeded(2, step, Phase.ACTION, 1)
    return Item(TASK, happened, lambda _: None, agent="left", repeated=repeated)


def submitted():
    return Item(TASK, i.Submit(1), lambda _: None, new=NewTask(TASK, "s", b"1", b"d"))


def stored(decision):
    return Loaded(TASK, SAGA, decision.task, b"1", b"d", NOW, NOW, None, {})


def test_a_repeated_event_is_looked_after_even_if_another_one_changes_the_task():
    once = stored(decided([submitted(), success("a")]))
    both = decided([success("a", repeated=True), success("b")], once)
    assert both.change is not None
    assert both.repeated


def test_a_repeated_event_that_was_not_handled_before_needs_no_looking_after():
    once = stored(decided([submitted()]))
    assert not decided([success("a", repeated=True)], once).repeated


async def tell_nobody(*_told):
    raise AssertionError("no step here is a child")


NO_CHILDREN = Family(tell_nobody, lambda: 0)


class Truth:
    """Commits, and is not heard the first time."""

    def __init__(self):
        self.stored = None
        self.heard = False

    async def load(self, ids):
        return {} if self.stored is None else {TASK: self.stored}

    async def newest(self, sagas, *, fresh):
        return dict.fromkeys(sagas, SAGA)

    async def commit(self, changes):
        self.stored = stored(changes[0])
        if not self.heard:
            self.heard = True
            raise StoreUnavailable("the connection broke before the answer came")
        return set()


class Transport:
    def announce(self, decision, kind):
        pass


async def test_a_commit_that_went_through_unheard_is_looked_after_when_tried_again():
    suspects = []
    truth, told = Truth(), []
    transport, suspect = Transport(), suspects.append
    engine = Engine(truth, truth, transport, told.extend, NO_CHILDREN, CHECK, suspect, suspect)
    items = [submitted()]
    try:
        await engine.commit(items)
        raise AssertionError("the store was to be away")
    except StoreUnavailable:
        await engine.perform(await engine.commit(items))
    assert suspects == [TASK]
