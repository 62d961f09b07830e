"""What durable pull consumers do that Headway relies on: at a real nats-server and simulated."""

from __future__ import annotations

import asyncio

import orjson
from conformance.benches import CONSUMER, NS, STREAM, Bench, Puller
from conformance.sites import Site, both, soon
from headway.agents.pull import ACK, IN_PROGRESS, NAK, Delivery, Pull, term

SHORT_S = 0.3  # an ack_wait that can be waited for
ADVISORY = "$JS.EVENT.ADVISORY.CONSUMER"


async def pulled(bench: Bench, *words: str) -> Puller:
    """These messages stored, and each delivered once."""
    await bench.stored(*words)
    puller = await bench.puller()
    puller.ask(len(words))
    await puller.until(len(words))
    return puller


async def deliveries_come_in_order_and_say_which_they_are(site: Site) -> None:
    bench = await Bench.at(site)
    puller = await bench.puller()
    puller.ask(2)
    await bench.stored("a", "b", "c")
    await puller.until(2)
    await puller.nothing_more()
    assert puller.seen == [("a", 1), ("b", 1)]
    assert [(each.sequence, each.body, each.headers) for each in puller.got] == [
        (1, b"x", b""),
        (2, b"x", b""),
    ]
    puller.ask(5)
    assert (await puller.until(3))[2].subject == "s.c"
    words = puller.got[2].reply.split(".")
    assert words[:6] == ["$JS", "ACK", STREAM, CONSUMER, "1", "3"]
    assert words[6] == "3"  # the consumer's own sequence


async def a_pull_ends_when_it_expires_and_says_what_will_not_come(site: Site) -> None:
    bench = await Bench.at(site)
    await bench.stored("a")
    puller = await bench.puller()
    puller.ask(5, expires_s=0.3)
    told = await puller.told("408")
    assert told.headers["Nats-Pending-Messages"] == "4"
    await bench.stored("b")
    await puller.nothing_more()
    puller.ask(1)
    await puller.until(2)


async def a_silent_pull_shows_that_it_is_alive(site: Site) -> None:
    bench = await Bench.at(site)
    puller = await bench.puller()
    puller.ask(1, expires_s=1.0, idle_heartbeat=round(0.2 * NS))
    await soon(lambda: [each.code for each in puller.statuses].count("100") >= 2, "heartbeats")
    await puller.told("408")


async def a_pull_from_no_consumer_is_told_so(site: Site) -> None:
    bench = await Bench.at(site)
    puller = await bench.puller("NONE")
    puller.ask(1)
    await puller.told("503")


async def an_acked_message_leaves_a_work_queue(site: Site) -> None:
    bench = await Bench.at(site, ack_wait_s=SHORT_S)
    puller = await pulled(bench, "a", "b")
    puller.answer(0, ACK)
    await bench.holds(1)
    puller.answer(0, ACK)  # again: harmless
    puller.answer(1, ACK)
    await bench.holds(0)
    puller.ask(5)
    await puller.nothing_more(2 * SHORT_S)


async def what_is_not_acked_comes_again_after_ack_wait(site: Site) -> None:
    bench = await Bench.at(site, ack_wait_s=SHORT_S)
    puller = await pulled(bench, "a", "b")
    began = asyncio.get_running_loop().time()
    puller.answer(1, ACK)
    puller.ask(5)
    await puller.until(3)
    waited = asyncio.get_running_loop().time() - began
    assert puller.seen[2] == ("a", 2)
    assert SHORT_S * 0.8 <= waited <= SHORT_S * 2.2
    await puller.until(4)
    assert puller.seen[3] == ("a", 3)


async def work_in_progress_puts_off_the_redelivery(site: Site) -> None:
    bench = await Bench.at(site, ack_wait_s=SHORT_S)
    puller = await pulled(bench, "a")
    puller.ask(5)
    for _ in range(8):
        await asyncio.sleep(SHORT_S / 4)
        puller.answer(0, IN_PROGRESS)
    await bench.wire.flush()
    assert len(puller.got) == 1
    await puller.until(2)


async def a_nak_brings_it_again_at_once_before_what_is_new(site: Site) -> None:
    bench = await Bench.at(site)
    puller = await pulled(bench, "a", "b")
    await bench.stored("c")
    puller.answer(1, NAK)
    await bench.wire.flush()
    puller.ask(2)
    await puller.until(4)
    assert puller.seen[2:] == [("b", 2), ("c", 1)]


async def term_takes_a_message_out_and_says_why(site: Site) -> None:
    bench = await Bench.at(site, ack_wait_s=SHORT_S)
    said: list[dict[str, object]] = []
    await bench.wire.subscribe(
        f"{ADVISORY}.MSG_TERMINATED.{STREAM}.{CONSUMER}",
        lambda _subject, _reply, _headers, body: said.append(orjson.loads(body)),
    )
    puller = await pulled(bench, "a")
    puller.answer(0, term("not a\r\ncommand"))
    await soon(lambda: said, "the advisory")
    assert (said[0]["stream_seq"], said[0]["reason"]) == (1, "not a command")
    await bench.holds(0)
    puller.ask(1)
    await puller.nothing_more(2 * SHORT_S)


async def the_ack_of_an_earlier_delivery_counts(site: Site) -> None:
    bench = await Bench.at(site, ack_wait_s=SHORT_S)
    puller = await pulled(bench, "a")
    puller.ask(1)
    await puller.until(2)
    puller.answer(0, ACK)
    await bench.holds(0)
    puller.ask(1)
    await puller.nothing_more(2 * SHORT_S)


async def anybody_may_answer_for_another(site: Site) -> None:
    """As whoever rescues what a dead worker held, who knows no more than the sequences."""
    bench = await Bench.at(site)
    puller = await pulled(bench, "a", "b")
    other = Bench(await site.connect())
    delivered = (await other.info())["delivered"]
    assert (delivered["consumer_seq"], delivered["stream_seq"]) == (2, 2)
    reply = f"$JS.ACK.{STREAM}.{CONSUMER}.1.1.{delivered['consumer_seq']}.0.0"
    other.wire.publish(reply, NAK)
    await other.wire.flush()
    puller.ask(1)
    await puller.until(3)
    assert puller.seen[2] == ("a", 2)


async def a_consumer_tells_what_waits_and_what_is_under_way(site: Site) -> None:
    bench = await Bench.at(site)

    async def tells(*wanted: int) -> None:
        async def does() -> bool:
            info = await bench.info()
            pending = info["num_pending"], info["num_ack_pending"]
            places = info["delivered"]["stream_seq"], info["ack_floor"]["stream_seq"]
            return (*pending, *places) == wanted

        await soon(does, f"the consumer at {wanted}")

    await bench.stored("a", "b", "c", "d")
    await tells(4, 0, 0, 0)
    puller = await bench.puller()
    puller.ask(3)
    await puller.until(3)
    await tells(1, 3, 3, 0)
    puller.answer(1, ACK)
    await tells(1, 2, 3, 0)
    puller.answer(0, ACK)
    await tells(1, 1, 3, 2)
    puller.answer(2, ACK)
    await tells(1, 0, 3, 3)


async def what_was_deleted_while_under_way_never_comes_again(site: Site) -> None:
    bench = await Bench.at(site, ack_wait_s=SHORT_S)
    puller = await pulled(bench, "a", "b")
    await bench.js(f"STREAM.MSG.DELETE.{STREAM}", {"seq": 1, "no_erase": True})
    puller.ask(5)
    await puller.until(3)
    assert puller.seen[2] == ("b", 2)
    puller.answer(0, ACK)
    puller.answer(1, ACK)

    async def is_through() -> bool:
        return bool((await bench.info())["num_ack_pending"] == 0)

    await soon(is_through, "nothing under way")
    await puller.nothing_more(2 * SHORT_S)


async def what_was_deleted_before_it_was_delivered_is_passed_over(site: Site) -> None:
    bench = await Bench.at(site)
    await bench.stored("a", "b")
    await bench.js(f"STREAM.MSG.DELETE.{STREAM}", {"seq": 1, "no_erase": True})
    puller = await bench.puller()
    puller.ask(2)
    await puller.until(1)
    await puller.nothing_more()
    assert puller.seen == [("b", 1)]


async def no_more_are_under_way_than_the_consumer_allows(site: Site) -> None:
    bench = await Bench.at(site, max_ack_pending=2)
    await bench.stored("a", "b", "c")
    puller = await bench.puller()
    puller.ask(5)
    await puller.until(2)
    await puller.nothing_more()
    puller.answer(0, ACK)
    await puller.until(3)


async def a_consumer_gets_only_what_it_filters(site: Site) -> None:
    bench = Bench(await site.connect())
    await bench.stream()
    await bench.consumer("ONE", filter_subject="s.one.*")
    await bench.consumer("TWO", filter_subject="s.two.*")
    await bench.stored("one.a", "two.b", "one.c")
    one, two = await bench.puller("ONE"), await bench.puller("TWO")
    one.ask(5)
    two.ask(5)
    await one.until(2)
    await two.until(1)
    await one.nothing_more()
    assert (one.seen, two.seen) == ([("a", 1), ("c", 1)], [("b", 1)])
    assert (await bench.info("ONE"))["num_pending"] == 0


async def of_two_who_pull_each_message_goes_to_one(site: Site) -> None:
    bench = await Bench.at(site)
    first = await bench.puller()
    second = await Bench(await site.connect()).puller()
    first.ask(3)
    second.ask(3)
    for each in (first, second):
        await each.bench.wire.flush()
    await bench.stored("a", "b", "c", "d", "e", "f")
    await first.until(3)
    await second.until(3)
    words = [word for word, delivered in first.seen + second.seen if delivered == 1]
    assert sorted(words) == ["a", "b", "c", "d", "e", "f"]


async def what_a_closed_connection_had_asked_for_goes_to_others(site: Site) -> None:
    bench = await Bench.at(site)
    gone = await Bench(await site.connect()).puller()
    gone.ask(10)
    await gone.bench.wire.flush()
    await gone.bench.connection.close()

    async def is_forgotten() -> bool:
        return not (await bench.info())["num_waiting"]

    await soon(is_forgotten, "the end of the pull")
    puller = await bench.puller()
    puller.ask(2)
    await bench.stored("a", "b")
    await puller.until(2)


async def what_an_ended_subscription_had_asked_for_goes_to_others(site: Site) -> None:
    bench = await Bench.at(site)
    gone = await bench.puller()
    gone.ask(10)
    await bench.wire.flush()
    await bench.wire.unsubscribe(gone.sid)
    puller = await bench.puller()
    puller.ask(2)
    await bench.stored("a", "b")
    await puller.until(2)
    assert gone.got == []


async def a_consumer_that_is_made_again_goes_on_where_it_was(site: Site) -> None:
    bench = await Bench.at(site)
    puller = await pulled(bench, "a", "b")
    puller.answer(0, ACK)
    await bench.consumer()
    await bench.stored("c")
    puller.ask(1)
    await puller.until(3)
    assert puller.seen[2] == ("c", 1)
    await bench.consumer(ack_wait_s=SHORT_S)
    puller.ask(5)
    assert (await bench.info())["config"]["ack_wait"] == SHORT_S * NS


async def a_deleted_consumer_ends_its_pulls_and_its_heir_gets_all_again(site: Site) -> None:
    bench = await Bench.at(site)
    puller = await pulled(bench, "a", "b")
    puller.answer(0, ACK)
    puller.ask(5)

    async def waits() -> bool:
        info = await bench.info()
        return bool(info["num_waiting"]) and info["ack_floor"]["stream_seq"] == 1

    await soon(waits, "the ack and the pull")
    await bench.js(f"CONSUMER.DELETE.{STREAM}.{CONSUMER}")
    await puller.told("409")
    await bench.consumer()
    puller.ask(5)
    await puller.until(3)
    assert puller.seen[2] == ("b", 1)


async def a_paused_consumer_gives_nothing_until_resumed(site: Site) -> None:
    bench = await Bench.at(site)
    puller = await bench.puller()
    pause = f"CONSUMER.PAUSE.{STREAM}.{CONSUMER}"
    paused = await bench.js(pause, {"pause_until": "2100-01-01T00:00:00Z"})
    assert paused["paused"] is True
    puller.ask(5)
    await bench.stored("a")
    await puller.nothing_more()
    assert (await bench.info())["paused"] is True
    assert (await bench.js(pause, {}))["paused"] is False
    puller.ask(5)
    await puller.until(1)


async def the_pull_loop_brings_everything_once_and_no_more_than_there_is_room_for(
    site: Site,
) -> None:
    bench = await Bench.at(site)
    held: list[Delivery] = []
    bodies: list[bytes] = []
    most = 0

    def take(message: Delivery) -> None:
        nonlocal most
        held.append(message)
        bodies.append(message.body)
        most = max(most, len(held))

    pull = Pull(bench.wire, STREAM, CONSUMER, take, lambda: 5 - len(held))
    running = asyncio.get_running_loop().create_task(pull.run())
    wanted = [b"%d" % number for number in range(60)]
    assert set(await bench.wire.store_all([("s.a", body) for body in wanted])) == {None}
    while len(bodies) < len(wanted) or held:
        await soon(lambda: held, "another message")
        bench.wire.publish(held.pop(0).reply, ACK)
        pull.freed()
    assert bodies == wanted
    assert most <= 5
    await bench.holds(0)
    running.cancel()
    await asyncio.wait([running])


test_deliveries_come_in_order = both(deliveries_come_in_order_and_say_which_they_are)
test_a_pull_ends_when_it_expires = both(a_pull_ends_when_it_expires_and_says_what_will_not_come)
test_a_silent_pull_shows_that_it_is_alive = both(a_silent_pull_shows_that_it_is_alive)
test_a_pull_from_no_consumer_is_told_so = both(a_pull_from_no_consumer_is_told_so)
test_an_acked_message_leaves_a_work_queue = both(an_acked_message_leaves_a_work_queue)
test_what_is_not_acked_comes_again = both(what_is_not_acked_comes_again_after_ack_wait)
test_work_in_progress_puts_off_the_redelivery = both(work_in_progress_puts_off_the_redelivery)
test_a_nak_brings_it_again_at_once = both(a_nak_brings_it_again_at_once_before_what_is_new)
test_term_takes_a_message_out_and_says_why = both(term_takes_a_message_out_and_says_why)
test_the_ack_of_an_earlier_delivery_counts = both(the_ack_of_an_earlier_delivery_counts)
test_anybody_may_answer_for_another = both(anybody_may_answer_for_another)
test_a_consumer_tells_how_it_stands = both(a_consumer_tells_what_waits_and_what_is_under_way)
test_what_was_deleted_under_way = both(what_was_deleted_while_under_way_never_comes_again)
test_what_was_deleted_before = both(what_was_deleted_before_it_was_delivered_is_passed_over)
test_no_more_are_under_way_than_allowed = both(no_more_are_under_way_than_the_consumer_allows)
test_a_consumer_gets_only_what_it_filters = both(a_consumer_gets_only_what_it_filters)
test_of_two_who_pull_each_message_goes_to_one = both(of_two_who_pull_each_message_goes_to_one)
test_a_closed_connection = both(what_a_closed_connection_had_asked_for_goes_to_others)
test_an_ended_subscription = both(what_an_ended_subscription_had_asked_for_goes_to_others)
test_a_consumer_made_again = both(a_consumer_that_is_made_again_goes_on_where_it_was)
test_a_deleted_consumer = both(a_deleted_consumer_ends_its_pulls_and_its_heir_gets_all_again)
test_a_paused_consumer = both(a_paused_consumer_gives_nothing_until_resumed)
test_the_pull_loop = both(the_pull_loop_brings_everything_once_and_no_more_than_there_is_room_for)
