"""When a server is left for another one, and which; tests/cluster does it for real."""

from __future__ import annotations

from functools import partial
from urllib.parse import urlparse

import pytest
from harness.eventually import eventually
from harness.services import RunningNats, nats_in
from headway.agents.connection import RECONNECT_WAIT_S, Course, connect
from headway.agents.isolation import hears_majority
from nats.aio.client import Server

MS = 1_000_000


def told(*silent_ms: int, leader: str = "nats-1"):
    copies = [
        {"name": f"nats-{n}", "active": ms * MS, "current": ms > 0}
        for n, ms in enumerate(silent_ms, 2)
    ]
    return {"cluster": {"leader": leader, "replicas": copies}}


@pytest.mark.parametrize(
    ("info", "obeyed"),
    [
        pytest.param({}, True, id="a server without a cluster"),
        pytest.param({"cluster": {"leader": "nats-1"}}, True, id="one copy"),
        pytest.param(told(10, 900), True, id="all there"),
        pytest.param(told(10, 90_000), True, id="one of three away"),
        pytest.param(told(5_000, 90_000), False, id="a leader that hears nobody"),
        pytest.param(told(0, 10), True, id="one never heard"),
        pytest.param(told(0, 0), False, id="nobody ever heard"),
        pytest.param(told(10, 10, leader=""), False, id="no leader"),
        pytest.param(told(10, 10, 9_000, 9_000), True, id="three of five"),
        pytest.param(told(10, 9_000, 9_000, 9_000), False, id="two of five"),
    ],
)
def test_a_leader_that_hears_no_majority_is_not_obeyed(info, obeyed) -> None:
    assert hears_majority(info) is obeyed


def servers(*reconnects: int) -> list[Server]:
    return [
        Server(urlparse(f"nats://n{number}:4222"), reconnects=failed)
        for number, failed in enumerate(reconnects)
    ]


def test_the_server_that_failed_least_often_is_next() -> None:
    chosen, wait_s = Course().choose(servers(2, 0, 1), {})
    assert (chosen.uri.netloc, wait_s) == ("n1:4222", 0.0)
    chosen, wait_s = Course().choose(servers(2, 3, 1), {})
    assert (chosen.uri.netloc, wait_s) == ("n2:4222", RECONNECT_WAIT_S)


def test_a_wanted_server_is_tried_once_and_a_left_one_is_not_taken_again() -> None:
    course = Course()
    course.wanted, course.left = "n0:4222", "n1:4222"
    assert course.choose(servers(9, 0, 0), {})[0].uri.netloc == "n0:4222"
    assert course.choose(servers(9, 0, 0), {})[0].uri.netloc == "n1:4222"
    course.left = "n1:4222"
    assert course.choose(servers(9, 0, 8), {})[0].uri.netloc == "n2:4222"
    course.left = "n0:4222"
    assert course.choose(servers(0), {})[0].uri.netloc == "n0:4222"


def reached(seen: list[object], count: int) -> bool:
    return len(seen) == count


async def test_a_connection_moves_to_another_server_and_its_subscriptions_with_it(
    nats_server: RunningNats, tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr("headway.agents.connection.MOVE_INTERVAL_S", 0.0)
    other = nats_in(tmp_path / "other")
    await other.start()
    try:
        async with await connect(f"{nats_server.url},{other.url}", name="test") as connection:
            moves: list[None] = []
            heard: list[bytes] = []
            connection.wire.on_reconnect(lambda: moves.append(None))
            await connection.wire.subscribe("x", lambda *message: heard.append(message[3]))
            for number in range(1, 4):
                [target] = connection.others
                async with await connection.beside(target) as beside:
                    assert beside.nc.connected_url.netloc == target
                await connection.move(target)
                await eventually(partial(reached, moves, number))
                assert connection.nc.connected_url.netloc == target
                connection.wire.publish("x", b"here")
                await eventually(partial(reached, heard, number))
    finally:
        await other.kill()


async def test_a_connection_that_knows_one_server_stays(nats_server: RunningNats) -> None:
    async with await connect(nats_server.url, name="test") as connection:
        assert connection.others == []
        await connection.move()
        assert connection.wire.connected
