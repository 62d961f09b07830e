"""What a journal takes and what it refuses: functions over values that were read a moment ago.

Always holds: a decision is only written if its journal still stands where it was read (`before`).
A journal is read before its task is, so that an attempt that has been replaced since cannot open
it: whoever replaced it has opened it too, or will, and then this decision is not written or what
it gave is taken away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from itertools import zip_longest

from headway.agents.entries import (
    BUDGET_SPENT,
    LOOP_DETECTED,
    OUT_OF_ORDER,
    SUPERSEDED,
    TOOL_NOT_ALLOWED,
    TRIPPED,
    UNDER_WAY_MAX,
    JournalAppend,
    JournalOpen,
    JournalSettle,
    NewEntry,
)
from headway.agents.identity import ACTION, COMPENSATION
from headway.agents.manifest import Manifest
from headway.coordinator.commands import check_agent, not_for
from headway.coordinator.errors import Refusal
from headway.coordinator.journal_rows import (
    CALLS_END,
    UNOPENED,
    Bounds,
    Call,
    Change,
    Head,
    Kept,
    Place,
    Row,
    Spent,
)
from headway.coordinator.records import Loaded
from headway.coordinator.taskchecks import check_sealed
from headway.sagas.loops import TRAIL_MAX, repeating

FAILURES_MAX = 3  # of tools, in a row, unless the manifest says otherwise
SIGNATURE_CHARS = 12  # of a call's arguments, in a trail

GUARDS = frozenset({TOOL_NOT_ALLOWED, BUDGET_SPENT, LOOP_DETECTED, TRIPPED})
"""Kinds of refusals after which a person must look."""


def opened(
    request: JournalOpen,
    agent: str,
    heads: Mapping[Place, Head],
    loaded: Loaded | None,
    resumed: int,
) -> list[Change]:
    """Give the journal to an attempt, if that is the one outstanding now, of this agent.

    `heads` are those of `touched`; `resumed` is the version of the task's history at which it was
    resumed last: what a guard counted before does not count any more. Nothing changes if the very
    same opener holds it already: its answer was lost. A compensation's opening also keeps its
    action from beginning anything.
    """
    _check_outstanding(request, agent, loaded)
    place, *others = touched(request)
    head = heads.get(place, UNOPENED)
    asked = request.attempt, request.epoch
    if asked < (head.attempt, head.command_epoch):
        raise superseded(
            f"{_attempt(request)} cannot have the journal: attempt {head.attempt} (epoch "
            f"{head.command_epoch}) has opened it"
        )
    changes = [
        Change(other, before, before._replace(epoch=max(before.epoch, 1), undoing=True))
        for other in others
        if not (before := heads.get(other, UNOPENED)).undoing
    ]
    holder = head.attempt, head.command_epoch, head.worker
    if head.epoch == 0 or holder != (*asked, request.worker):
        after = head._replace(
            epoch=head.epoch + 1,
            attempt=request.attempt,
            command_epoch=request.epoch,
            agent=agent,
            worker=request.worker,
            resumed=resumed,
        )
        if resumed > head.resumed:
            after = _forgiven(after)
        changes.append(Change(place, head, after))
    return changes


def touched(request: JournalOpen) -> tuple[Place, ...]:
    """The journals that opening this one changes, this one first."""
    place = Place(request.task, request.step, request.phase)
    if request.phase == COMPENSATION:
        return place, place._replace(phase=ACTION)
    return (place,)


def appended(
    request: JournalAppend, agent: str, rows: Sequence[Row], head: Head, bounds: Bounds
) -> Change | None:
    """Append all of the entries; `rows` is how they are kept.

    None: the journal has entries of these numbers already, perhaps these very ones.
    """
    place = Place(request.task, request.step, request.phase)
    if request.epoch < head.epoch:
        raise superseded(
            f"epoch {request.epoch} of the journal for {place} is over: another has it, with epoch "
            f"{head.epoch}"
        )
    if request.epoch > head.epoch or not head.worker:
        raise superseded(f"the journal for {place} was not opened with epoch {request.epoch}")
    if agent != head.agent:
        raise not_for(agent, request.step, request.phase, head.agent)
    if request.seq <= head.seq:
        return None
    if request.seq > head.seq + 1:
        raise out_of_order(f"entry {request.seq} cannot come next: the journal has {head.seq}")
    after, kept, spent = head, list(rows), Spent()
    for number, entry in enumerate(request.entries):
        if entry.kind == "intent":
            after = _begun(after, entry, Bounds(bounds.manifest, bounds.spent.and_also(spent)))
        elif entry.kind in CALLS_END:
            call = _under_way(after, entry.key)
            after = _over(after, entry, call)
            kept[number] = kept[number]._replace(tool=call.tool)
        after = after._replace(seq=after.seq + 1)
        spent = spent.and_also(entry.usage)
    return Change(place, head, after, kept, spent)


def settled(request: JournalSettle, row: Row, head: Head, loaded: Loaded | None) -> Change | None:
    """Take a person's word for how a call ended. None: nothing is known to be open about it."""
    if loaded is None:
        raise Refusal(f"there is no task {request.task}", 404)
    if not loaded.task.parked:
        raise Refusal(
            f"the task is {loaded.task.status}; a call is settled by hand only while its task is "
            "parked",
            409,
        )
    check_sealed(loaded.input, request.result, "result")
    call = head.unsettled.get(request.key)
    if call is None:
        return None
    place = Place(request.task, request.step, request.phase)
    after = _forgiven(head)._replace(
        epoch=head.epoch + 1,
        seq=head.seq + 1,
        worker="",
        unsettled=_without(head.unsettled, request.key),
    )
    return Change(place, head, after, [row._replace(tool=call.tool)])


def said_before(request: JournalSettle, row: Row, last: Kept | None) -> int:
    """The number of the entry that says just this of the call; Refusal if the call ended in another
    way, or never began. `last` is the last entry about it."""
    if last is None:
        raise Refusal(
            f"there is no call {request.key!r} in the journal for the {request.phase} of step "
            f"{request.step!r}",
            404,
        )
    if last.row._replace(tool="") != row:
        raise Refusal(
            f"call {request.key!r} is settled already: entry {last.seq} is its {last.row.kind}", 409
        )
    return last.seq


def check_appended_before(
    request: JournalAppend, rows: Sequence[Row], kept: Sequence[Kept]
) -> None:
    """Refuse to append entries where the journal has others; `kept` are those from `seq` on."""
    for row, stored in zip_longest(rows, kept):
        if stored is None:
            raise out_of_order(f"entry {request.seq} was appended before, but with fewer others")
        same = row if row.tool else row._replace(tool=stored.row.tool)
        if stored.row != same or stored.epoch != request.epoch:
            raise out_of_order(f"entry {stored.seq} is another one in the journal")


def superseded(reason: str) -> Refusal:
    return Refusal(reason, 409, SUPERSEDED)


def out_of_order(reason: str) -> Refusal:
    return Refusal(reason, 409, OUT_OF_ORDER)


def _check_outstanding(request: JournalOpen, agent: str, loaded: Loaded | None) -> None:
    """Refuse whatever is not the attempt that is outstanding, of the agent that it is for."""
    if loaded is None:
        raise Refusal(f"there is no task {request.task}", 404)
    check_agent(agent, loaded, request.step, request.phase)
    state = loaded.task.steps[request.step]
    now = state.phase, state.attempt, state.epoch
    if not state.outstanding or now != (request.phase, request.attempt, request.epoch):
        raise superseded(
            f"{_attempt(request)} is not outstanding any more: another worker has it, or the task "
            "has gone on without it"
        )


def _attempt(request: JournalOpen) -> str:
    return (
        f"attempt {request.attempt} (epoch {request.epoch}) of the {request.phase} of step "
        f"{request.step!r}"
    )


def _begun(head: Head, entry: NewEntry, bounds: Bounds) -> Head:
    """After a call was begun, if it may be."""
    if head.undoing:
        raise superseded("the step is being undone, so that nothing further may be begun")
    under_way = head.unsettled.get(entry.key)
    if under_way is not None:
        raise out_of_order(
            f"call {entry.key!r} is under way already: entry {under_way.seq} is its intent, and "
            "nothing says how it ended"
        )
    if len(head.unsettled) >= UNDER_WAY_MAX:
        raise Refusal(f"at most {UNDER_WAY_MAX} calls of one step may be under way at once", 409)
    _check_manifest(entry.tool, bounds)
    if head.failures >= _failures_max(bounds.manifest):
        raise Refusal(
            f"{head.failures} calls of tools failed in a row: a person must look before "
            f"{entry.tool!r} is called",
            409,
            TRIPPED,
        )
    signature = f"{entry.tool} {_short(entry.arguments_digest)}"
    trail = (*head.trail, signature)[-TRAIL_MAX:]
    loop = repeating(trail)
    if loop:
        raise Refusal(f"the agent goes round in circles: {loop}", 409, LOOP_DETECTED)
    call = Call(head.seq + 1, entry.tool, signature)
    return head._replace(trail=trail, unsettled={**head.unsettled, entry.key: call})


def _check_manifest(tool: str, bounds: Bounds) -> None:
    manifest, spent = bounds
    if manifest is None:
        return
    if manifest.tools is not None and tool not in manifest.tools:
        raise Refusal(
            f"tool {tool!r} is not one of the {len(manifest.tools)} that the task's manifest "
            "allows",
            403,
            TOOL_NOT_ALLOWED,
        )
    if manifest.max_tokens is not None and spent.tokens >= manifest.max_tokens:
        raise _budget_spent(f"{spent.tokens} of {manifest.max_tokens} tokens are used")
    if manifest.max_cost_usd is not None and spent.cost_usd >= manifest.max_cost_usd:
        raise _budget_spent(f"{spent.cost_usd:g} of {manifest.max_cost_usd:g} US dollars are spent")


def _failures_max(manifest: Manifest | None) -> int:
    own = None if manifest is None else manifest.max_tool_failures
    return FAILURES_MAX if own is None else own


def _budget_spent(why: str) -> Refusal:
    return Refusal(
        f"the task's budget is spent: {why}, so no further tool is called", 402, BUDGET_SPENT
    )


def _under_way(head: Head, key: str) -> Call:
    call = head.unsettled.get(key)
    if call is None:
        raise out_of_order(f"call {key!r} is not under way: no intent of it is open")
    return call


def _over(head: Head, entry: NewEntry, call: Call) -> Head:
    """After a call ended, or was found never to have happened: then it is no step of a loop."""
    head = head._replace(unsettled=_without(head.unsettled, entry.key))
    match entry.kind:
        case "result":
            return head._replace(failures=0)
        case "failure":
            return head._replace(failures=head.failures + 1)
        case _:
            return head._replace(trail=_without_last(head.trail, call.signature))


def _forgiven(head: Head) -> Head:
    """After a person has looked: what was counted before is no reason to stop any more."""
    return head._replace(failures=0, trail=())


def _without(calls: Mapping[str, Call], key: str) -> dict[str, Call]:
    return {name: call for name, call in calls.items() if name != key}


def _without_last(trail: tuple[str, ...], signature: str) -> tuple[str, ...]:
    for place in range(len(trail) - 1, -1, -1):
        if trail[place] == signature:
            return trail[:place] + trail[place + 1 :]
    return trail


def _short(arguments_digest: str) -> str:
    return sha256(arguments_digest.encode()).hexdigest()[:SIGNATURE_CHARS]
