"""The addresses of one PostgreSQL: a primary and its standbys, of which one takes writes.

`postgresql://user:password@host1:5432,host2:5432/database?target_session_attrs=read-write`. The
server that takes writes is found by asking each; whoever fails over changes nothing here.

What a failover may lose is PostgreSQL's to say. With synchronous replication
(`synchronous_standby_names`, `synchronous_commit = on`) nothing that was committed is lost, and a
failover is as harmless as a restart. With asynchronous replication the last commits of the old
primary may be missing on the new one, and then:

- tasks accepted in them are gone, though their submitters were told otherwise, and what agents did
  for them stays done: submit again under the same id, and it counts once. Approvals, documents
  and other words of people are gone likewise;
- other tasks are as they were a moment before: what agents have done since is done again, under
  the same operation ids, so that a downstream system that dedupes on them applies it once. Answers
  of attempts that the new primary knows nothing of are recognised by their epoch and dropped.
"""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode, urlsplit

TARGET = "target_session_attrs"
WRITABLE = "read-write"


def addresses(url: str) -> tuple[str, ...]:
    """A URL for each address, in order. Where there are several, one that takes writes is wanted;
    a URL with one address is left as it is."""
    parts = urlsplit(url)
    user, at, places = parts.netloc.rpartition("@")
    if "," not in places:
        return (url,)
    query = urlencode({TARGET: WRITABLE, **dict(parse_qsl(parts.query))})
    return tuple(
        parts._replace(netloc=f"{user}{at}{place}", query=query).geturl()
        for place in places.split(",")
        if place
    )


def place(url: str) -> str:
    """host:port of a URL with one address: no secret in it."""
    return urlsplit(url).netloc.rpartition("@")[2]
