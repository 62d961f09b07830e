"""What JetStream's streams do that Headway relies on: at a real nats-server and simulated."""

from __future__ import annotations

import asyncio
from random import Random

from conformance.benches import NS, QUEUE, STREAM, Bench
from conformance.sites import RealSite, SimulatedSite, Site, both
from headway.agents.subjects import event_subject
from headway.agents.wire import NO_STREAM, TOO_LARGE, StoreError
from headway.coordinator.topology import Topology

SUBJECT_TAKEN = 10077
NO_MESSAGE = 10037
NO_SEQUENCE = 10043
DELETE_FAILED = 10057  # of a sequence that was never given out
NAME_IN_USE = 10058
NO_SUCH_STREAM = 10059
NO_SUCH_CONSUMER = 10014


def codes(outcomes: list[StoreError | None]) -> list[int]:
    return [0 if each is None else each.code for each in outcomes]


async def stores_are_confirmed_in_order(site: Site) -> None:
    bench = await Bench.at(site)
    await bench.stored("a", "b", "a")
    state = await bench.state()
    assert (state["messages"], state["first_seq"], state["last_seq"]) == (3, 1, 3)
    assert [(await bench.message(seq=seq))[1] for seq in (1, 2, 3)] == ["s.a", "s.b", "s.a"]


async def what_no_stream_takes_is_refused(site: Site) -> None:
    bench = await Bench.at(site)
    too_large = b"x" * (bench.connection.nc.max_payload + 1)
    messages = [("other", b""), ("s", b""), ("s.a", too_large), ("s.a.b", b"")]
    outcomes = await bench.wire.store_all(messages)
    assert codes(outcomes) == [NO_STREAM, NO_STREAM, TOO_LARGE, 0]


async def one_message_a_subject_is_kept_and_the_next_refused(site: Site) -> None:
    bench = Bench(await site.connect())
    await bench.stream(max_msgs_per_subject=1, discard_new_per_subject=True)
    assert codes(await bench.store("a", "a", "b")) == [0, SUBJECT_TAKEN, 0]
    seq, *_ = await bench.message(last_by_subj="s.a")
    assert await bench.code(f"STREAM.MSG.DELETE.{STREAM}", {"seq": seq, "no_erase": True}) == 0
    assert codes(await bench.store("a", "b")) == [0, SUBJECT_TAKEN]
    assert (await bench.state())["messages"] == 2


async def an_id_is_stored_once_within_its_window(site: Site) -> None:
    bench = Bench(await site.connect())
    await bench.stream(duplicate_window=NS // 2)

    async def store(number: bytes) -> StoreError | None:
        settled: asyncio.Future[StoreError | None] = asyncio.get_running_loop().create_future()
        headers = b"NATS/1.0\r\nNats-Msg-Id: " + number + b"\r\n\r\n"
        bench.wire.store("s.a", b"x", settled.set_result, headers=headers)
        return await settled

    assert [await store(number) for number in (b"1", b"1", b"2")] == [None] * 3
    assert (await bench.state())["messages"] == 2
    await asyncio.sleep(1.2)
    assert await store(b"1") is None
    assert (await bench.state())["messages"] == 3


async def messages_are_found_by_sequence_and_by_subject(site: Site) -> None:
    bench = Bench(await site.connect())
    await bench.stream()
    await bench.wire.store_all([("s.a", b"1"), ("s.b", b"2"), ("s.a", b"3"), ("s.c.d", b"4")])

    async def found(**which: object) -> tuple[int, bytes]:
        seq, _, _, body = await bench.message(**which)
        return seq, body

    assert await found(seq=2) == (2, b"2")
    assert await found(last_by_subj="s.a") == (3, b"3")
    assert await found(last_by_subj="s.*") == (3, b"3")
    assert await found(last_by_subj="s.>") == (4, b"4")
    assert await found(next_by_subj="s.a", seq=0) == (1, b"1")
    assert await found(next_by_subj="s.a", seq=2) == (3, b"3")
    assert await found(next_by_subj="s.*", seq=2) == (2, b"2")
    assert await found(next_by_subj="s.a") == (1, b"1")
    get = f"STREAM.MSG.GET.{STREAM}"
    for which in ({"seq": 5}, {"last_by_subj": "s.z"}, {"next_by_subj": "s.a", "seq": 4}):
        assert await bench.code(get, which) == NO_MESSAGE
    assert await bench.code("STREAM.MSG.GET.NONE", {"seq": 1}) == NO_SUCH_STREAM


async def headers_are_kept_as_they_came(site: Site) -> None:
    bench = Bench(await site.connect())
    await bench.stream()
    headers, settled = b"NATS/1.0\r\nce-id: 1\r\n\r\n", asyncio.get_running_loop().create_future()
    bench.wire.store("s.a", b"body", settled.set_result, headers=headers)
    assert await settled is None
    assert await bench.message(seq=1) == (1, "s.a", headers, b"body")


async def a_message_is_deleted_once(site: Site) -> None:
    bench = Bench(await site.connect())
    await bench.stream()
    await bench.stored("a", "b", "a")
    delete = f"STREAM.MSG.DELETE.{STREAM}"
    assert await bench.code(delete, {"seq": 3, "no_erase": True}) == 0
    assert await bench.code(delete, {"seq": 3, "no_erase": True}) == NO_SEQUENCE
    assert await bench.code(delete, {"seq": 9, "no_erase": True}) == DELETE_FAILED
    assert (await bench.message(last_by_subj="s.a"))[0] == 1
    await bench.stored("c")
    assert (await bench.state())["last_seq"] == 4


async def subjects_are_listed_as_they_match(site: Site) -> None:
    bench = Bench(await site.connect())
    await bench.stream()
    await bench.stored("a", "b", "a", "x.a")

    async def listed(wanted: str, offset: int = 0) -> tuple[dict[str, int], int]:
        asked = {"subjects_filter": wanted, "offset": offset}
        info = await bench.js(f"STREAM.INFO.{STREAM}", asked)
        return info["state"].get("subjects") or {}, info.get("total", 0)

    assert await listed("s.*") == ({"s.a": 2, "s.b": 1}, 2)
    assert await listed("s.>") == ({"s.a": 2, "s.b": 1, "s.x.a": 1}, 3)
    assert (await listed("s.z"))[0] == {}
    assert (await listed("s.>", 3))[0] == {}


async def a_stream_is_purged_by_subject(site: Site) -> None:
    bench = Bench(await site.connect())
    await bench.stream()
    await bench.stored("a", "b", "a")
    assert (await bench.js(f"STREAM.PURGE.{STREAM}", {"filter": "s.a"}))["purged"] == 2
    assert (await bench.state())["messages"] == 1


async def creating_again_changes_nothing_and_otherwise_is_refused(site: Site) -> None:
    bench = await Bench.at(site)
    created = (await bench.stream())["created"]
    await bench.stored("a")
    assert (await bench.stream())["created"] == created
    other = QUEUE | {"max_age": 60 * NS}
    assert await bench.code(f"STREAM.CREATE.{STREAM}", other) == NAME_IN_USE
    updated = await bench.js(f"STREAM.UPDATE.{STREAM}", other)
    assert (updated["created"], updated["state"]["messages"]) == (created, 1)
    assert updated["state"]["consumer_count"] == 1


async def a_stream_made_anew_has_another_identity_and_nothing_in_it(site: Site) -> None:
    bench = await Bench.at(site)
    await bench.stored("a")
    before = (await bench.js(f"STREAM.INFO.{STREAM}"))["created"]
    await bench.js(f"STREAM.DELETE.{STREAM}")
    assert await bench.code(f"STREAM.INFO.{STREAM}") == NO_SUCH_STREAM
    assert codes(await bench.store("a")) == [NO_STREAM]
    after = await bench.stream()
    assert after["created"] != before
    assert (after["state"]["messages"], after["state"]["consumer_count"]) == (0, 0)
    assert await bench.code(f"CONSUMER.INFO.{STREAM}.C") == NO_SUCH_CONSUMER


async def what_is_there_outlives_a_stream_of_another_name(site: Site) -> None:
    bench = await Bench.at(site)
    await bench.js("STREAM.CREATE.T", {"name": "T", "subjects": ["t.*"]})
    await bench.stored("a")
    assert codes(await bench.wire.store_all([("t.a", b"")])) == [0]
    await bench.js("STREAM.DELETE.T")
    assert (await bench.state())["messages"] == 1


test_stores_are_confirmed_in_order = both(stores_are_confirmed_in_order)
test_what_no_stream_takes_is_refused = both(what_no_stream_takes_is_refused)
test_one_message_a_subject_is_kept = both(one_message_a_subject_is_kept_and_the_next_refused)
test_an_id_is_stored_once_within_its_window = both(an_id_is_stored_once_within_its_window)
test_messages_are_found = both(messages_are_found_by_sequence_and_by_subject)
test_headers_are_kept_as_they_came = both(headers_are_kept_as_they_came)
test_a_message_is_deleted_once = both(a_message_is_deleted_once)
test_subjects_are_listed_as_they_match = both(subjects_are_listed_as_they_match)
test_a_stream_is_purged_by_subject = both(a_stream_is_purged_by_subject)
test_creating_again_changes_nothing = both(creating_again_changes_nothing_and_otherwise_is_refused)
test_a_stream_made_anew_is_another = both(a_stream_made_anew_has_another_identity_and_nothing_in_it)
test_streams_do_not_mix = both(what_is_there_outlives_a_stream_of_another_name)


def test_events_get_the_same_partitions_at_both(tmp_path):
    """Events are stored under a subject with a partition that the server works out."""
    rng, found = Random(1), []
    tasks = [f"{rng.getrandbits(128):032x}" for _ in range(40)]

    async def partitions(site: Site) -> None:
        bench = Bench(await site.connect())
        await Topology(bench.connection, 1).declare([])
        messages = [(event_subject("ag", task), b"{}") for task in tasks]
        assert set(await bench.wire.store_all(messages)) == {None}
        info = await bench.js("STREAM.INFO.HW_EVENTS", {"subjects_filter": ">"})
        found.append(sorted(info["state"]["subjects"]))

    RealSite(tmp_path / "nats").run(partitions)
    SimulatedSite().run(partitions)
    assert found[0] == found[1]
    assert len({subject.split(".")[2] for subject in found[0]}) > 10
