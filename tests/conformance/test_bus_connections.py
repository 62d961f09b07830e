"""What connections, requests and a server that comes and goes do: at a real one and simulated."""

from __future__ import annotations

import asyncio

import nats.errors
import pytest
from conformance.benches import STREAM, Bench
from conformance.sites import Site, both, soon
from headway.agents.pull import ACK, Delivery, Pull
from headway.agents.wire import UNCONFIRMED, StoreError
from headway.coordinator.topology import Topology


async def a_message_goes_to_each_that_listens(site: Site) -> None:
    one, two = Bench(await site.connect()), Bench(await site.connect())
    heard: list[tuple[str, str, bytes]] = []

    def listen(name: str):
        return lambda subject, _reply, _headers, body: heard.append((name, subject, body))

    for name, bench, subject in (("a", one, "x.*"), ("b", two, "x.>"), ("c", two, "y")):
        await bench.wire.subscribe(subject, listen(name))
        await bench.wire.flush()
    one.wire.publish("x.1", b"1")
    one.wire.publish("x.1.2", b"2")
    await soon(lambda: len(heard) == 3)
    assert sorted(heard) == [("a", "x.1", b"1"), ("b", "x.1", b"1"), ("b", "x.1.2", b"2")]


async def of_a_queue_group_one_gets_it(site: Site) -> None:
    one, two = Bench(await site.connect()), Bench(await site.connect())
    heard: list[bytes] = []
    for bench in (one, two):
        take = lambda _subject, _reply, _headers, body: heard.append(body)  # noqa: E731
        await bench.wire.subscribe("work", take, queue="all")
        await bench.wire.flush()
    for number in range(20):
        one.wire.publish("work", b"%d" % number)
    await one.wire.flush()
    await two.wire.flush()
    await soon(lambda: len(heard) == 20)
    assert len(set(heard)) == 20


async def a_request_is_answered_by_whoever_listens(site: Site) -> None:
    asker, server = Bench(await site.connect()), Bench(await site.connect())
    await server.wire.subscribe(
        "echo", lambda _subject, reply, _headers, body: server.wire.publish(reply, body * 2)
    )
    await server.wire.flush()
    assert (await asker.wire.request("echo", b"ab", 2.0)).data == b"abab"


async def a_request_that_nobody_hears_fails_at_once_and_one_unanswered_in_time(site: Site) -> None:
    asker, server = Bench(await site.connect()), Bench(await site.connect())
    with pytest.raises(nats.errors.NoRespondersError):
        await asker.wire.request("nobody", b"", 2.0)
    sid = await server.wire.subscribe("mute", lambda *_message: None)
    await server.wire.flush()
    with pytest.raises(nats.errors.TimeoutError):
        await asker.wire.request("mute", b"", 0.2)
    await server.wire.unsubscribe(sid)
    with pytest.raises(nats.errors.NoRespondersError):
        await asker.wire.request("mute", b"", 2.0)


async def who_has_closed_is_heard_no_more(site: Site) -> None:
    asker, gone = Bench(await site.connect()), Bench(await site.connect())
    await gone.wire.subscribe("alive", lambda *_message: None)
    await gone.wire.flush()
    await gone.connection.close()

    async def is_gone() -> bool:
        try:
            await asker.wire.request("alive", b"", 0.1)
        except nats.errors.NoRespondersError:
            return True
        except nats.errors.TimeoutError:
            return False
        return False

    await soon(is_gone, "the end")
    with pytest.raises(ConnectionError):
        gone.wire.publish("x", b"")


async def what_was_published_before_a_close_arrives(site: Site) -> None:
    bench, closing = await Bench.at(site), Bench(await site.connect())
    closing.wire.publish("s.a", b"last words")
    await closing.connection.close()
    await bench.holds(1)


async def a_server_that_returns_finds_its_clients_and_its_subscriptions(site: Site) -> None:
    bench = await Bench.at(site)
    told: list[str] = []
    heard: list[bytes] = []
    bench.wire.on_disconnect(lambda: told.append("lost"))
    bench.wire.on_reconnect(lambda: told.append("there"))
    await bench.wire.subscribe("x", lambda _subject, _reply, _headers, body: heard.append(body))
    await bench.wire.flush()
    await bench.outage(site.kill)
    bench.wire.publish("x", b"meanwhile")
    outcomes = await bench.store("a")
    assert [each and each.code for each in outcomes] == [UNCONFIRMED]
    await bench.outage(site.start)
    await soon(lambda: heard == [b"meanwhile"], "what was published meanwhile")
    await soon(lambda: told == ["lost", "there"], "both are told")
    await bench.stored("b")


async def a_store_that_is_under_way_when_the_server_dies_is_unconfirmed(site: Site) -> None:
    bench = await Bench.at(site)
    settled: list[StoreError | None] = []
    await site.kill()
    bench.wire.store("s.a", b"x", settled.append)
    await soon(lambda: settled, "the outcome")
    assert [each and each.code for each in settled] == [UNCONFIRMED]
    await site.start()


async def what_a_stream_held_is_there_after_a_restart(site: Site) -> None:
    bench = await Bench.at(site)
    await bench.stored("a", "b")
    before = await bench.js(f"STREAM.INFO.{STREAM}")
    puller = await bench.puller()
    puller.ask(1)
    await puller.until(1)
    await bench.outage(site.kill)
    await bench.outage(site.start)
    after = await bench.js(f"STREAM.INFO.{STREAM}")
    assert after["created"] == before["created"]
    assert after["state"]["messages"] == 2
    assert after["state"]["consumer_count"] == 1


async def a_wiped_store_is_another_and_empty(site: Site) -> None:
    bench = Bench(await site.connect())
    topology = Topology(bench.connection, 1)
    before = await topology.declare(["ag"])
    assert await topology.identities() == before
    await bench.outage(site.kill)
    await site.wipe()
    await bench.outage(site.start)
    assert set((await topology.identities()).values()) == {""}
    after = await topology.declare(["ag"])
    assert all(after[name] != before[name] for name in before)
    assert await topology.identities() == after


async def the_pull_loop_goes_on_after_a_restart(site: Site) -> None:
    bench = await Bench.at(site)
    got: list[bytes] = []

    def take(message: Delivery) -> None:
        got.append(message.body)
        bench.wire.publish(message.reply, ACK)

    running = asyncio.get_running_loop().create_task(
        Pull(bench.wire, STREAM, "C", take, lambda: 10).run()
    )
    await bench.wire.store_all([("s.a", b"1")])
    await soon(lambda: got, "the first")
    await bench.outage(site.kill)
    await bench.outage(site.start)
    assert await bench.wire.store_all([("s.a", b"2")]) == [None]
    await soon(lambda: b"2" in got, "the second")
    running.cancel()
    await asyncio.wait([running])


test_a_message_goes_to_each_that_listens = both(a_message_goes_to_each_that_listens)
test_of_a_queue_group_one_gets_it = both(of_a_queue_group_one_gets_it)
test_a_request_is_answered = both(a_request_is_answered_by_whoever_listens)
test_a_request_that_nobody_hears = both(
    a_request_that_nobody_hears_fails_at_once_and_one_unanswered_in_time
)
test_who_has_closed_is_heard_no_more = both(who_has_closed_is_heard_no_more)
test_what_was_published_before_a_close_arrives = both(what_was_published_before_a_close_arrives)
test_a_server_that_returns = both(a_server_that_returns_finds_its_clients_and_its_subscriptions)
test_a_store_under_way = both(a_store_that_is_under_way_when_the_server_dies_is_unconfirmed)
test_what_a_stream_held_is_there = both(what_a_stream_held_is_there_after_a_restart)
test_a_wiped_store_is_another_and_empty = both(a_wiped_store_is_another_and_empty)
test_the_pull_loop_goes_on_after_a_restart = both(the_pull_loop_goes_on_after_a_restart)
