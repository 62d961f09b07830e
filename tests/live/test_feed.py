"""The feed over HTTP: nothing that is stored is missed, whoever serves it and whatever breaks."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import suppress
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import httpx
import nats.errors
import orjson
import pytest
from harness.coordination import registered
from harness.eventually import eventually
from harness.shop import linear
from harness.system import System
from headway.agents.feed_views import FeedRequest
from headway.agents.subjects import FEED_STREAM, feed_subject
from headway.coordinator import feed, feed_ring, http_connections
from headway.coordinator.feed import _news
from headway.coordinator.feed_ring import FeedEvent, Position, Ring
from headway.coordinator.places import Places
from headway.coordinator.token_making import token_making
from listening import Face, Listener, faces, listening


@pytest.fixture
async def face(system: System) -> AsyncIterator[Face]:
    async with faces(system.nats.url, system.postgres_url) as [one]:
        await registered(system.client, linear())
        yield one


async def told(system: System, count: int, saga: str = "linear", padding: int = 0) -> list[str]:
    """So many stored news, straight into the stream; their tasks."""
    tasks = [str(uuid4()) for _ in range(count)]
    jetstream = system.client.connection.nc
    for task in tasks:
        news = {"task": task, "saga": saga, "status": "succeeded", "at": " " * padding}
        await jetstream.publish(feed_subject(saga, task, "succeeded"), orjson.dumps(news))
    await jetstream.flush()
    return tasks


def stored(listener: Listener) -> list[str]:
    return [each.data["task"] for each in listener.stored()]


async def heard(listener: Listener, tasks: list[str], within_s: float = 10.0) -> None:
    """Exactly these, in their order, and each once."""
    await eventually(
        lambda: len(stored(listener)) >= len(tasks) or listener.ended, within_s, what="news"
    )
    assert stored(listener) == tasks


async def test_a_task_is_followed_from_its_submission_to_its_end(
    system: System, face: Face
) -> None:
    async with listening(face.address) as listener, system.working():
        view = await system.client.run("linear", {"number": 1}, timeout=20)
        await eventually(lambda: "succeeded" in listener.kinds(), what="the end")
    kinds = listener.kinds(str(view.task))
    assert kinds[-1] == "succeeded"
    assert set(kinds) <= {"submitted", "progressed", "succeeded"}
    [end] = listener.stored()
    assert end.data == {
        "task": str(view.task),
        "saga": "linear",
        "status": "succeeded",
        "version": view.version,
        "at": end.data["at"],
    }


async def test_only_what_was_asked_for_is_heard(system: System, face: Face) -> None:
    async with (
        listening(face.address, saga="other") as of_saga,
        listening(face.address, kind=["parked"]) as of_kind,
        listening(face.address) as of_all,
    ):
        [task] = await told(system, 1)
        async with listening(face.address, task=task, last_id="0") as of_task:
            await told(system, 2)
            [others] = await told(system, 1, "other")
            await eventually(lambda: len(stored(of_all)) == 4, what="all")
            await heard(of_task, [task])
        await heard(of_saga, [others])
        assert of_kind.events == []


async def test_another_coordinator_goes_on_where_the_first_one_died(system: System) -> None:
    async with faces(system.nats.url, system.postgres_url, 2) as [first, second]:
        async with listening(first.address) as before:
            tasks = await told(system, 3)
            await heard(before, tasks)
            await first.leave()
            await eventually(lambda: before.ended, what="the stream ends")
        missed = await told(system, 300)
        async with listening(second.address, last_id=before.last_id) as after:
            late = await told(system, 3)
            await heard(after, [*missed, *late])
            assert "gap" not in after.kinds()


async def test_what_follows_the_position_of_an_event_is_heard_by_its_query_as_well(
    system: System, face: Face
) -> None:
    tasks = await told(system, 3)
    async with listening(face.address, last_event_id="1") as listener:
        await heard(listener, tasks[1:])


async def test_who_is_behind_what_is_kept_in_memory_reads_the_stream(
    system: System, face: Face, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_ring, "RING_MAX", 16)
    tasks = await told(system, 1_500)
    async with listening(face.address, last_id="0") as listener:
        tasks += await told(system, 700)
        await heard(listener, tasks)


async def test_a_nats_server_that_is_killed_is_read_on_when_it_is_back(
    system: System, face: Face
) -> None:
    async with listening(face.address) as listener:
        tasks = await told(system, 5)
        await heard(listener, tasks)
        await system.nats.kill()
        await system.nats.start()
        await eventually(system.client.health, 20, what="a coordinator answers")
        tasks += await told(system, 5)
        await heard(listener, tasks, 20)


async def test_a_position_that_is_too_old_is_told_as_a_gap(system: System, face: Face) -> None:
    tasks = await told(system, 10)
    await system.client.connection.nc.jetstream().purge_stream(FEED_STREAM, seq=6)
    async with listening(face.address, last_id="2") as listener:
        await eventually(lambda: len(listener.events) == 6, what="what is left")
        gap = listener.events[0]
        assert (gap.event, gap.data["after"], gap.data["first"]) == ("gap", 2, 6)
        assert [each.data["task"] for each in listener.events[1:]] == tasks[5:]


async def test_a_store_that_was_lost_is_told_as_a_gap(system: System, face: Face) -> None:
    async with listening(face.address) as before:
        await heard(before, await told(system, 5))
    await system.nats.wipe_store()

    async def there() -> bool:
        with suppress(nats.errors.Error):
            await system.client.connection.nc.jetstream().stream_info(FEED_STREAM)
            return True
        return False

    await eventually(there, 20, what="the stream is there again")
    tasks = await told(system, 7)  # more than there were: the number alone would not tell
    async with listening(face.address, last_id=before.last_id) as after:
        await eventually(lambda: len(after.events) == 8, what="all")
        assert after.events[0].event == "gap"
        assert [each.data["task"] for each in after.events[1:]] == tasks


async def test_a_quiet_feed_says_where_it_stands(
    system: System, face: Face, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "KEEP_ALIVE_S", 0.1)
    async with listening(face.address, saga="other") as listener:
        await eventually(lambda: listener.comments > 2, what="signs of life")
        await told(system, 4)
        await eventually(lambda: listener.last_id.startswith("4."), what="the newest position")
        assert listener.events == []


async def test_one_reader_serves_all_listeners_and_none_stays_without_them(
    system: System, face: Face
) -> None:
    async def consumers() -> int:
        info = await system.client.connection.nc.jetstream().stream_info(FEED_STREAM)
        return info.state.consumer_count

    async with (
        listening(face.address) as one,
        listening(face.address) as two,
        listening(face.address) as three,
    ):
        tasks = await told(system, 50)
        for listener in (one, two, three):
            await heard(listener, tasks)
        assert await consumers() == 1

    async def none() -> bool:
        return await consumers() == 0

    await eventually(none, what="no consumer")


async def test_who_does_not_read_keeps_nobody_else_from_hearing_and_is_cut_off(
    system: System, face: Face, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_connections, "READ_WITHIN_S", 0.5)
    place = urlsplit(face.address)
    sluggish = socket.create_connection((place.hostname, place.port))
    sluggish.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    sluggish.sendall(
        b"GET /api/feed?last_event_id=0 HTTP/1.1\r\nHost: x\r\n"
        b"Authorization: Bearer hw_c0_only-for-tests\r\n\r\n"
    )
    try:
        async with listening(face.address) as listener:
            tasks = await told(system, 3_000, padding=5_000)
            await heard(listener, tasks)
            places = face.coordinator._feed._places
            await eventually(lambda: places.count == 1, what="it is cut off")
    finally:
        sluggish.close()


async def test_listeners_that_break_off_while_they_are_told_the_past_leave_nothing_behind(
    system: System, face: Face
) -> None:
    await told(system, 1_000)
    place = urlsplit(face.address)
    for round_ in range(12):
        listeners = []
        for _ in range(40):
            listener = socket.create_connection((place.hostname, place.port))
            at_once = struct.pack("ii", 1, 0)  # a reset, which does not wait for what is unread
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
            listener.sendall(
                b"GET /api/feed?last_event_id=0 HTTP/1.1\r\nHost: x\r\n"
                b"Authorization: Bearer hw_c0_only-for-tests\r\n\r\n"
            )
            listeners.append(listener)
        await asyncio.sleep(0.005 * round_)  # in another moment each time
        for listener in listeners:
            listener.close()
    await eventually(lambda: not face.coordinator._feed._places.count, what="nobody listens")


async def test_a_token_decides_what_is_heard_and_for_how_long(
    system: System, face: Face, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "KEEP_ALIVE_S", 0.1)
    monkeypatch.setattr("headway.coordinator.feed_http.KEEP_ALIVE_S", 0.1)
    async with token_making(system.postgres_url) as making:
        submit, view = await making.create("sue", "submit"), await making.create("vic", "view")
        [other] = await told(system, 1)

        async def known() -> bool:
            return (await refused(face, submit, {}))[0] != 401

        await eventually(known, 2, what="fresh tokens are known")
        for query, status, detail in [
            ({}, 403, "role 'submit' must name one of its own tasks"),
            ({"task": other}, 404, f"there is no task {other}"),
        ]:
            assert await refused(face, submit, query) == (status, detail)
        assert (await refused(face, "hw_00_wrong", {}))[0] == 401
        assert await refused(face, view, {"last_event_id": "newest"}) == (
            422,
            "Last-Event-ID: not one that this API gave",
        )
        for saga in ("", "*", ">", "a b", "a.b", "a\r\nb"):  # no stream could be read for these
            status, detail = await refused(face, view, {"saga": saga})
            assert (status, detail.partition(": ")[0]) == (422, "saga")
        async with listening(face.address, token=view) as listener:
            await told(system, 1)
            await eventually(lambda: len(listener.events) == 1)
            await making.revoke("vic")
            await eventually(lambda: listener.ended, what="the stream ends")


async def refused(face: Face, token: str, query: dict[str, str]) -> tuple[int, str]:
    async with httpx.AsyncClient(base_url=face.address) as client:
        headers = {"Authorization": f"Bearer {token}"}
        answer = await client.get("/api/feed", headers=headers, params=query)
        return answer.status_code, answer.json()["detail"]


async def test_more_listeners_than_there_is_room_for_are_told_to_come_again(
    system: System, face: Face, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(face.coordinator._feed, "_places", Places(1, 1, "listeners"))
    async with listening(face.address):
        assert await refused(face, "hw_c0_only-for-tests", {}) == (
            503,
            "too many listeners at once; ask again",
        )
    async with listening(face.address) as listener:
        await heard(listener, await told(system, 1))


async def test_one_token_takes_no_more_than_its_share_of_the_places(
    face: Face, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(face.coordinator._feed, "_places", Places(2, 1, "listeners"))
    async with listening(face.address):
        assert await refused(face, "hw_c0_only-for-tests", {}) == (
            429,
            "'console' has 1 listeners here already; wait until one ends",
        )


# The ring


def event(sequence: int, task: str = "", kind: str = "succeeded") -> FeedEvent:
    return FeedEvent(sequence, "s", task or f"t{sequence}", kind, b"")


def test_from_a_place_in_the_ring_on_nothing_stored_is_missing() -> None:
    ring = Ring(Position("x", 10))
    for sequence in range(11, 11 + 2 * feed_ring.RING_MAX):
        ring.append(event(sequence))
        ring.append(event(0, "hint", "progressed"))
    newest = ring.position.sequence
    for sequence in (newest, newest - 1, newest - 100, newest - feed_ring.RING_MAX // 2 + 1):
        place = ring.place_after(sequence)
        assert place is not None
        entries = ring.since(place) or ()
        assert [each.sequence for each in entries if each.sequence] == list(
            range(sequence + 1, newest + 1)
        )
    assert ring.place_after(newest - feed_ring.RING_MAX) is None
    assert ring.since(0) is None


def test_a_ring_begins_where_the_stream_ended() -> None:
    ring = Ring(Position("x", 10))
    assert ring.place_after(9) is None
    assert ring.place_after(10) == 0
    assert ring.place_after(12) == 0  # who read the stream further than we did


def test_of_hints_the_newest_of_each_task_is_told_and_of_stored_news_all() -> None:
    events = [
        event(0, "a", "submitted"),
        event(0, "a", "progressed"),
        event(1, "a"),
        event(0, "b", "submitted"),
        event(0, "b", "progressed"),
        event(2, "c"),
        *(event(0, f"t{number}", "progressed") for number in range(200)),
    ]
    news = _news(events, FeedRequest(), 1)
    assert [each.sequence for each in news if each.sequence] == [2]
    hints = [each.task for each in news if not each.sequence]
    assert len(hints) == feed.HINTS_AT_ONCE
    assert len(set(hints)) == len(hints)


@pytest.mark.parametrize("text", ["", "x", "1.", "-1", "1 2", "1.x y", "9" * 20, "٣"])
def test_what_is_no_position_is_refused(text: str) -> None:
    assert Position.read(text) is None or text == "1."


def test_a_position_reads_what_it_wrote() -> None:
    for position in (Position("abc", 7), Position("", 7)):
        assert Position.read(str(position)) == position


async def test_nobody_listens_on_a_closed_feed(system: System, face: Face) -> None:
    async with listening(face.address) as listener:
        leaving = asyncio.create_task(face.leave())
        await eventually(lambda: listener.ended, what="the stream ends")
        await leaving


def test_a_subject_of_another_kind_is_no_news() -> None:
    assert FeedEvent.read("hw.commands.a.b.c", 1, b"") is None
    read = FeedEvent.read(feed_subject("s", str(UUID(int=1)), "parked"), 3, b"{}")
    assert read == FeedEvent(3, "s", str(UUID(int=1)), "parked", b"{}")
