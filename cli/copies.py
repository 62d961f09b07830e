"""What the doctor makes of the copies that a cluster keeps of streams and consumers. Pure.

As long as most copies hear each other the work goes on, so one that is missing is a note; that
nothing goes on any more is wrong.
"""

from __future__ import annotations

from typing import Any

from headway.agents.isolation import hears_majority, is_heard
from headway.cli.findings import Finding, note, ok, wrong

_NANOSECONDS = 1_000_000_000

NO_LEADER = (
    "an election takes up to 10 s: look again; if it stays so, start the servers that are down: "
    "more than half of them must be there"
)
CUT_OFF = (
    "mend the network between the servers' cluster ports, or start those that are down: more than "
    "half of them must hear each other"
)
MISSING = "start it, or mend the network to its cluster port; the others do its work meanwhile"
CATCHING_UP = "it catches up by itself; stop no other server until it has"
ONE_COPY = (
    "what is stored is lost with that server: set HEADWAY_REPLICAS=3 for every coordinator and "
    "restart one"
)


def copies(check: str, info: dict[str, Any], declared: int, held: str) -> Finding:
    """Of one stream or consumer, by what its leader says: `declared` copies are wanted (0: as many
    as its stream has), and `held` says what it holds."""
    cluster = info.get("cluster")  # has a name if there are several servers
    if not cluster or not cluster.get("name"):
        return ok(check, held)
    leader = cluster.get("leader")
    followers = cluster.get("replicas") or []
    if not leader:
        return wrong(check, "has no leader: nothing is stored or delivered", NO_LEADER)
    if declared == 1:
        return wrong(check, f"has one copy only, on {leader}, in a cluster", ONE_COPY)
    if not hears_majority(info):
        away = ", ".join(sorted(copy["name"] for copy in followers if not is_heard(copy)))
        found = f"its leader {leader} does not hear {away}: nothing is stored or delivered"
        return wrong(check, found, CUT_OFF)
    if len(followers) + 1 < declared:
        found = f"has {len(followers) + 1} of {declared} copies: a server for each is wanted"
        return note(check, found, "start the servers that are missing")
    troubled = [_of(copy) for copy in followers if not (is_heard(copy) and copy["current"])]
    if troubled:
        found = "; ".join(found for found, _ in troubled)
        return note(check, found, troubled[0][1])
    return ok(check, f"{held}, {declared} copies, led by {leader}")


def _of(copy: dict[str, Any]) -> tuple[str, str]:
    """What is wrong with a copy, and what to do."""
    name, silent_ns = copy["name"], copy.get("active", 0)
    if not is_heard(copy):
        since = f"for {silent_ns / _NANOSECONDS:.0f} s" if silent_ns else "by this leader"
        return f"{name} has not been heard of {since}", MISSING
    lag = copy.get("lag", 0)
    behind = f"is {lag} entries behind" if lag else "is being rebuilt"
    return f"{name} {behind}", CATCHING_UP


def paused(check: str, info: dict[str, Any]) -> Finding | None:
    """A consumer that delivers nothing for a while, on purpose."""
    if not info.get("paused"):
        return None
    left_s = info.get("pause_remaining", 0) / _NANOSECONDS
    remedy = (
        "its breaker opens it again by itself, to probe; by hand: nats consumer resume "
        f"{info['stream_name']} {info['name']}"
    )
    return note(check, f"is paused for {left_s:.0f} s more", remedy)
