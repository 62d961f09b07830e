"""What the doctor says of copies, servers and standbys; tests/cluster has it say so for real."""

from __future__ import annotations

import pytest
from headway.cli.copies import copies, paused

SECOND = 1_000_000_000


def copy(name: str, silent_s: float = 0.5, current: bool = True, lag: int = 0):
    told = {"name": name, "active": round(silent_s * SECOND), "current": current}
    return told | ({"lag": lag} if lag else {})


def info(*replicas, leader: str | None = "nats-1", name: str = "headway"):
    return {"cluster": {"name": name, "leader": leader, "replicas": list(replicas)}}


FINE = copy("nats-2"), copy("nats-3")


@pytest.mark.parametrize(
    ("told", "declared", "state", "found", "remedy"),
    [
        pytest.param(
            *(info(*FINE), 3, "ok", "7 messages, 3 copies, led by nats-1", ""), id="all is well"
        ),
        pytest.param(
            *({"cluster": {"leader": "N"}}, 1, "ok", "7 messages", ""), id="a single server"
        ),
        pytest.param(
            info(copy("nats-2", 8.2), FINE[1]),
            3,
            "note",
            "nats-2 has not been heard of for 8 s",
            "start it, or mend the network to its cluster port; the others do its work meanwhile",
            id="a node is missing",
        ),
        pytest.param(
            info(copy("nats-2", 0, current=False), FINE[1]),
            3,
            "note",
            "nats-2 has not been heard of by this leader",
            "start it, or mend the network to its cluster port; the others do its work meanwhile",
            id="a node is missing since before the election",
        ),
        pytest.param(
            info(copy("nats-2", current=False, lag=1_234), FINE[1]),
            3,
            "note",
            "nats-2 is 1234 entries behind",
            "it catches up by itself; stop no other server until it has",
            id="a copy lags",
        ),
        pytest.param(
            info(copy("nats-2", current=False), FINE[1]),
            3,
            "note",
            "nats-2 is being rebuilt",
            "it catches up by itself; stop no other server until it has",
            id="a copy whose store was lost",
        ),
        pytest.param(
            info(copy("nats-2", 9), copy("nats-3", 12)),
            3,
            "wrong",
            "its leader nats-1 does not hear nats-2, nats-3: nothing is stored or delivered",
            "mend the network between the servers' cluster ports, or start those that are down: "
            "more than half of them must hear each other",
            id="no quorum",
        ),
        pytest.param(
            info(*FINE, leader=None),
            3,
            "wrong",
            "has no leader: nothing is stored or delivered",
            "an election takes up to 10 s: look again; if it stays so, start the servers that are "
            "down: more than half of them must be there",
            id="no leader",
        ),
        pytest.param(
            info(FINE[0]),
            3,
            "note",
            "has 2 of 3 copies: a server for each is wanted",
            "start the servers that are missing",
            id="fewer copies than declared",
        ),
        pytest.param(
            info(),
            1,
            "wrong",
            "has one copy only, on nats-1, in a cluster",
            "what is stored is lost with that server: set HEADWAY_REPLICAS=3 for every coordinator "
            "and restart one",
            id="not replicated in a cluster",
        ),
    ],
)
def test_copies_are_judged_by_what_their_leader_says(told, declared, state, found, remedy) -> None:
    finding = copies("stream X", told, declared, "7 messages")
    assert (finding.state, finding.found, finding.remedy) == (state, found, remedy)


def test_a_paused_consumer_says_for_how_long_and_how_to_resume_it() -> None:
    told = {"stream_name": "HW_COMMANDS", "name": "shop"}
    assert paused("consumer shop of HW_COMMANDS", told) is None
    finding = paused("x", told | {"paused": True, "pause_remaining": 12 * SECOND})
    assert finding is not None
    assert (finding.state, finding.found) == ("note", "is paused for 12 s more")
    assert finding.remedy == (
        "its breaker opens it again by itself, to probe; by hand: nats consumer resume "
        "HW_COMMANDS shop"
    )
