"""The wire against a real server: messages, stores and what a restart does to them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from harness.eventually import eventually
from harness.services import PASSWORD, RunningNats
from headway.agents.connection import (
    PENDING_MAX_BYTES,
    Connection,
    _credentials,
    _split,
    _without_credentials,
    connect,
)
from headway.agents.errors import Unavailable
from headway.agents.wire import NO_STREAM, TOO_LARGE, UNCONFIRMED, StoreError, Unanswered
from nats.aio.msg import Msg
from nats.errors import NoRespondersError

Message = tuple[str, str, bytes, bytes]


class Inbox:
    def __init__(self) -> None:
        self.messages: list[Message] = []

    def __call__(self, *message: Any) -> None:
        self.messages.append(message)


class Outcome:
    def __init__(self) -> None:
        self.seen: list[StoreError | None] = []

    def __call__(self, outcome: StoreError | None) -> None:
        self.seen.append(outcome)


async def test_what_is_published_in_one_turn_arrives_in_order(connection: Connection) -> None:
    inbox = Inbox()
    await connection.wire.subscribe("a.*", inbox)
    for number in range(1000):
        connection.wire.publish("a.b", b"%d" % number, "back")
    await eventually(lambda: len(inbox.messages) == 1000)
    assert inbox.messages == [("a.b", "back", b"", b"%d" % n) for n in range(1000)]


async def test_headers_and_large_messages_arrive_whole(connection: Connection) -> None:
    inbox = Inbox()
    await connection.wire.subscribe("a", inbox)
    big = bytes(range(256)) * 8192
    connection.wire.publish("a", big)
    connection.wire.hand_over()
    await connection.nc.publish("a", b"x", headers={"K": "v"})
    await eventually(lambda: len(inbox.messages) == 2)
    assert inbox.messages[0] == ("a", "", b"", big)
    assert inbox.messages[1] == ("a", "", b"NATS/1.0\r\nK: v\r\n\r\n", b"x")


async def test_a_queue_group_shares_messages(connection: Connection) -> None:
    one, two = Inbox(), Inbox()
    await connection.wire.subscribe("q", one, queue="g")
    await connection.wire.subscribe("q", two, queue="g")
    for _ in range(100):
        connection.wire.publish("q", b"")
    await eventually(lambda: len(one.messages) + len(two.messages) == 100)


async def test_unsubscribe_still_delivers_what_was_sent_before(connection: Connection) -> None:
    inbox = Inbox()
    sid = await connection.wire.subscribe("a", inbox)
    await connection.wire.flush()
    for _ in range(500):
        connection.wire.publish("a", b"x" * 1000)
    await connection.wire.unsubscribe(sid)
    assert len(inbox.messages) == 500
    connection.wire.publish("a", b"late")
    await connection.wire.flush()
    assert len(inbox.messages) == 500


async def test_plain_nats_subscriptions_and_requests_work_beside_it(
    connection: Connection,
) -> None:
    async def answer(message: Any) -> None:
        await message.respond(b"to " + message.data)

    await connection.nc.subscribe("ask", cb=answer)
    reply = await connection.wire.request("ask", b"me", 2.0)
    assert reply.data == b"to me"
    with pytest.raises(NoRespondersError):
        await connection.wire.request("nobody", b"", 2.0)


async def test_a_store_is_confirmed_by_the_stream(connection: Connection) -> None:
    await connection.nc.jetstream().add_stream(name="S", subjects=["s.*"])
    outcome = Outcome()
    connection.wire.store("s.a", b"one", outcome)
    connection.wire.store("s.b", b"two", outcome, headers=b"NATS/1.0\r\nK: v\r\n\r\n")
    await eventually(lambda: len(outcome.seen) == 2)
    assert outcome.seen == [None, None]
    stored = await connection.nc.jetstream().get_msg("S", 2)
    assert (stored.data, stored.headers) == (b"two", {"K": "v"})


async def test_store_all_gives_one_outcome_each_in_order(connection: Connection) -> None:
    await connection.nc.jetstream().add_stream(
        name="S",
        subjects=["s.*"],
        max_msgs_per_subject=1,
        discard="new",
        discard_new_per_subject=True,
    )
    outcomes = await connection.wire.store_all(
        [("s.a", b"1"), ("s.a", b"2"), ("nowhere", b"3"), ("s.b", b"4"), ("s.c", b"x" * 9_000_000)]
    )
    assert [outcome and outcome.code for outcome in outcomes] == [
        None,
        10077,
        NO_STREAM,
        None,
        TOO_LARGE,
    ]
    assert await connection.wire.store_all([]) == []


async def test_a_store_without_an_answer_is_unconfirmed_in_time(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway.agents.wire.STORE_TIMEOUT_S", 0.05)
    await connection.wire.subscribe("silent", Inbox())
    outcome = Outcome()
    connection.wire.store("silent", b"", outcome)
    connection.wire.store("silent", b"", outcome)
    await eventually(lambda: len(outcome.seen) == 2)
    assert [error and error.code for error in outcome.seen] == [UNCONFIRMED, UNCONFIRMED]


async def test_a_failing_callback_does_not_keep_others_from_being_settled(
    connection: Connection,
) -> None:
    def fail(_outcome: StoreError | None) -> None:
        raise RuntimeError("boom")

    outcome = Outcome()
    connection.wire.store("nowhere", b"", fail)
    connection.wire.store("nowhere", b"", outcome)
    await eventually(lambda: outcome.seen)


async def test_publishing_too_much_is_refused_before_the_server_hangs_up(
    connection: Connection,
) -> None:
    with pytest.raises(ValueError, match="max_payload"):
        connection.wire.publish("a", b"x" * 9_000_000)


async def test_after_a_close_publishing_says_so(nats_url: str) -> None:
    connection = await connect(nats_url, name="test")
    outcome = Outcome()
    connection.wire.store("nowhere", b"", outcome)
    await connection.close()
    assert len(outcome.seen) == 1
    with pytest.raises(ConnectionError):
        connection.wire.publish("a", b"")
    with pytest.raises(ConnectionError):
        connection.wire.store("a", b"", outcome)


async def test_what_is_published_just_before_a_close_is_sent(nats_url: str) -> None:
    async with await connect(nats_url, name="listener") as listener:
        inbox = Inbox()
        await listener.wire.subscribe("a", inbox)
        await listener.wire.flush()
        async with await connect(nats_url, name="test") as connection:
            connection.wire.publish("a", b"last")
        await eventually(lambda: inbox.messages)


async def test_a_restart_of_the_server_is_survived(nats_server: RunningNats) -> None:
    async with await connect(nats_server.url, name="test") as connection:
        wire, inbox, news = connection.wire, Inbox(), list[str]()
        await connection.nc.jetstream().add_stream(name="S", subjects=["s.*"])
        await wire.subscribe("a", inbox)
        wire.on_disconnect(lambda: news.append("lost"))
        forget = wire.on_reconnect(lambda: news.append("back"))
        for round_number in range(1, 4):
            outcome = Outcome()
            await nats_server.kill()
            await eventually(lambda: not connection.nc.is_connected)
            wire.store("s.a", b"while away", outcome)
            wire.publish("a", b"kept %d" % round_number)
            await eventually(lambda seen=outcome.seen: seen)
            assert outcome.seen[0] is not None
            assert outcome.seen[0].code == UNCONFIRMED
            await nats_server.start()
            await eventually(lambda: connection.nc.is_connected and inbox.messages)
            assert inbox.messages.pop() == ("a", "", b"", b"kept %d" % round_number)
            [outcome_after] = await wire.store_all([("s.a", b"after")])
            assert outcome_after is None
        assert news == ["lost", "back"] * 3
        forget()


async def test_stores_in_flight_when_the_server_dies_settle_exactly_once(
    nats_server: RunningNats,
) -> None:
    async with await connect(nats_server.url, name="test") as connection:
        wire, outcomes = connection.wire, list[Outcome]()
        await connection.nc.jetstream().add_stream(name="S", subjects=["s.*"])

        async def storing() -> None:
            while True:
                await wire.store_all([("s.a", b"x" * 500)] * 100)
                outcomes.extend(Outcome() for _ in range(200))
                for outcome in outcomes[-200:]:
                    wire.store("s.a", b"x" * 500, outcome)

        task = asyncio.create_task(storing())
        await eventually(lambda: sum(None in each.seen for each in outcomes) > 1000)
        await nats_server.kill()
        await eventually(lambda: not connection.nc.is_connected)
        task.cancel()
        await nats_server.start()
        await eventually(lambda: connection.nc.is_connected)
        await eventually(lambda: all(outcome.seen for outcome in outcomes))
        assert all(len(outcome.seen) == 1 for outcome in outcomes)
        assert [outcome.seen[0] for outcome in outcomes].count(None) > 0


async def test_a_first_connect_says_what_it_could_not_reach() -> None:
    with pytest.raises(Unavailable, match=r"no NATS server at nats://127\.0\.0\.1:9 let us in"):
        await connect("nats://me:secret@127.0.0.1:9", name="test", timeout=0.3)


async def test_wrong_credentials_are_named_without_the_password(nats_server: RunningNats) -> None:
    url = nats_server.url.replace(PASSWORD, "wrong")
    with pytest.raises(Unavailable, match="Authorization Violation") as caught:
        await connect(url, name="test", timeout=0.5)
    assert "wrong" not in str(caught.value)


async def test_a_connect_that_waits_finds_a_server_that_comes_later(
    nats_server: RunningNats,
) -> None:
    await nats_server.kill()
    connecting = asyncio.create_task(connect(nats_server.url, name="test", wait=True))
    await asyncio.sleep(0)
    await nats_server.start()
    await (await connecting).close()


async def test_of_several_servers_any_that_answers_will_do(nats_url: str) -> None:
    host = nats_url.rpartition("@")[2]
    credentials = nats_url.removeprefix("nats://").rpartition("@")[0]
    async with await connect(f"nats://{credentials}@127.0.0.1:9, {host}", name="test") as found:
        assert found.wire.connected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("nats://me:s%40cret%2F@a:1", {"user": "me", "password": "s@cret/"}),
        ("nats://to%3Aken@a:1", {"token": "to:ken"}),
        ("a:1", {}),
    ],
)
def test_credentials_in_a_url_may_be_percent_encoded(url: str, expected: dict[str, str]) -> None:
    assert _credentials([_split(url)]) == expected
    assert "cret" not in _without_credentials(_split(url))


async def test_what_a_long_disconnect_cannot_keep_is_dropped_without_an_error(
    nats_server: RunningNats, caplog: pytest.LogCaptureFixture
) -> None:
    async with await connect(nats_server.url, name="test") as connection:
        await nats_server.kill()
        await eventually(lambda: not connection.wire.connected)
        connection.wire.publish("a", b"x" * 4_000_000)
        for _ in range(9):
            connection.wire.publish("a", b"x" * 4_000_000)
            connection.wire.hand_over()
        assert connection.nc.pending_data_size <= PENDING_MAX_BYTES
        assert "buffer of a long disconnect is full" in caplog.text


async def test_a_close_amid_a_reconnect_is_no_cancellation_of_who_closes(
    nats_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection, forever = await connect(nats_url, name="test"), asyncio.Event()

    async def given_up() -> None:
        raise asyncio.CancelledError

    monkeypatch.setattr(connection.nc._transport, "wait_closed", given_up)
    await connection.close()
    assert connection.wire.closed
    connection = await connect(nats_url, name="test")
    monkeypatch.setattr(connection.nc._transport, "wait_closed", forever.wait)
    closing = asyncio.create_task(connection.close())
    await eventually(lambda: connection.wire.closed)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing


async def test_a_cancellation_that_meets_the_answer_is_not_lost(connection: Connection) -> None:
    await connection.wire.subscribe("a", Inbox())
    asking = asyncio.create_task(connection.wire.request("a", b"", 5))
    await eventually(lambda: bool(connection.nc._resp_map))
    [answered] = connection.nc._resp_map.values()
    answered.set_result(Msg(connection.nc))
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking


async def test_a_request_that_is_not_answered_in_time_is_forgotten(connection: Connection) -> None:
    await connection.wire.subscribe("a", Inbox())
    with pytest.raises(TimeoutError):
        await connection.wire.request("a", b"", 0.05)
    await eventually(lambda: not connection.nc._resp_map)


async def test_asking_tells_nobody_there_from_no_answer(connection: Connection) -> None:
    with pytest.raises(Unavailable, match="nobody listens on nobody") as nobody:
        await connection.wire.ask("nobody", b"", 1.0)
    assert not isinstance(nobody.value, Unanswered)
    await connection.wire.subscribe("silent", Inbox())
    with pytest.raises(Unanswered, match=r"no answer on silent within 0\.05 s"):
        await connection.wire.ask("silent", b"", 0.05)
