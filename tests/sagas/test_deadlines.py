"""The clocks of a task: what runs out when, and the one timer that stands for all."""

from __future__ import annotations

from corpus import ALL_TIMEOUTS, ENDLESS, NO_LIMIT, ONCE, steps
from headway.sagas import Dispatch, Saga, Stop, Timeouts, Withdraw, due
from headway.sagas import events as e
from headway.sagas import inputs as i
from headway.sagas.circumstances import Bounds
from headway.sagas.deadlines import (
    CLOSE_GRACE_MS,
    DISPATCH_CHECK_MS,
    STOP_WAIT_MS,
    check_due,
    clock_due,
)
from telling import ACTION, COMPENSATION, START, Story, compensations


def story_with(timeouts: Timeouts) -> Story:
    return Story(steps("timed", ("a", ""), timeouts=timeouts))


def timeouts_of(story: Story) -> list[str]:
    return [event.timeout for event in story.history if isinstance(event, e.AttemptTimedOut)]


def test_a_dispatch_without_an_answer_is_looked_after_within_a_minute_and_not_before_half() -> None:
    story = story_with(NO_LIMIT)
    timer = due(story.definition, story.state)
    assert timer is not None
    assert DISPATCH_CHECK_MS <= timer - story.now < 2 * DISPATCH_CHECK_MS
    assert not check_due(story.step("a"), story.now + DISPATCH_CHECK_MS - 1)
    assert check_due(story.step("a"), timer)
    assert not clock_due(story.definition, story.state, timer)


def test_the_next_look_comes_after_the_one_before() -> None:
    story = story_with(NO_LIMIT)
    timer = due(story.definition, story.state)
    assert timer is not None
    later = due(story.definition, story.state, checked_at=timer)
    assert later is not None
    assert DISPATCH_CHECK_MS <= later - timer < 2 * DISPATCH_CHECK_MS


def test_schedule_to_start_runs_out_only_if_no_agent_is_known_to_have_begun() -> None:
    idle = story_with(Timeouts(schedule_to_start=5.0, start_to_close=None))
    idle.wait_until_due()
    assert timeouts_of(idle) == ["schedule_to_start"]
    begun = story_with(Timeouts(schedule_to_start=5.0, start_to_close=None))
    begun.started("a")
    begun.wait(60_000)
    assert begun.tick().events == ()


def test_start_to_close_runs_out_a_little_after_the_worker_would_have_said_so() -> None:
    story = story_with(Timeouts(start_to_close=20.0))
    story.started("a")
    assert due(story.definition, story.state) == story.now + 20_000 + CLOSE_GRACE_MS
    story.wait(20_000 + CLOSE_GRACE_MS - 1)
    assert story.tick().events == ()
    story.wait(1)
    story.tick()
    assert timeouts_of(story) == ["start_to_close"]


def test_a_handler_is_given_up_when_its_heartbeats_stop() -> None:
    story = story_with(ALL_TIMEOUTS)
    story.started("a")
    story.wait(4_000)
    story.heartbeat("a")
    story.wait(4_999)
    assert story.tick().events == ()
    story.wait(1)
    story.tick()
    assert timeouts_of(story) == ["heartbeat"]


def test_a_first_heartbeat_also_says_that_the_handler_has_begun() -> None:
    story = story_with(ALL_TIMEOUTS)
    story.heartbeat("a")
    assert story.step("a").started_at == story.now
    assert story.heartbeat("a").events == ()


def test_schedule_to_close_ends_all_retrying() -> None:
    limits = Timeouts(start_to_close=5.0, schedule_to_close=10.0)
    story = Story(steps("whole", ("a", ""), retry=ENDLESS, timeouts=limits))
    story.faulted("a", no_effect=True, retry_after_ms=4_000)
    story.wait_until_due()
    story.faulted("a", attempt=2, no_effect=True, retry_after_ms=6_000)
    assert story.statuses() == {"a": "failed"}


def test_an_attempt_that_runs_at_schedule_to_close_is_unknown_and_not_tried_again() -> None:
    limits = Timeouts(start_to_close=5.0, schedule_to_close=10.0)
    story = Story(steps("whole", ("a", ""), retry=ENDLESS, timeouts=limits))
    story.wait(10_000)
    story.tick()
    assert timeouts_of(story) == ["schedule_to_close"]
    assert compensations(story) == ["a"]


def test_no_attempt_is_sent_after_schedule_to_close_however_late_the_timer_goes_off() -> None:
    limits = Timeouts(start_to_close=5.0, schedule_to_close=10.0)
    story = Story(steps("late", ("a", ""), retry=ENDLESS, timeouts=limits))
    story.faulted("a", no_effect=True)
    story.wait(60_000)
    story.tick()
    assert timeouts_of(story) == ["schedule_to_close"]
    assert (story.status, story.statuses()) == ("compensated", {"a": "failed"})
    assert len(story.sent) == 1


def test_schedule_to_close_starts_anew_when_a_person_asks_for_a_retry() -> None:
    limits = Timeouts(start_to_close=5.0, schedule_to_close=10.0)
    story = Story(steps("whole", ("p !", ""), timeouts=limits))
    story.wait(10_000)
    story.tick()
    assert story.status == "parked"
    story.wait(50_000)
    story.retry()
    assert story.step("p").outstanding
    story.wait(9_999)
    assert story.tick().events == ()


def test_schedule_to_close_does_not_end_a_compensation() -> None:
    limits = Timeouts(start_to_close=5.0, schedule_to_close=10.0)
    story = Story(steps("whole", ("a", ""), retry=ONCE, timeouts=limits))
    story.timed_out("a")
    story.wait(3_600_000)
    assert story.tick().events == ()
    assert story.step("a").outstanding


def test_a_compensations_own_clocks_run_from_its_own_dispatch() -> None:
    limits = Timeouts(schedule_to_start=5.0, start_to_close=None)
    story = Story(steps("own", ("a", ""), retry=ONCE, timeouts=limits))
    story.wait(4_000)
    story.timed_out("a")
    story.wait(4_999)
    assert story.tick().events == ()
    story.wait(1)
    story.tick()
    last = story.history[-1]
    assert isinstance(last, e.AttemptTimedOut)
    assert last.phase is COMPENSATION


def test_an_attempt_without_a_limit_is_given_up_half_a_minute_after_it_was_asked_to_stop() -> None:
    story = story_with(NO_LIMIT)
    story.cancel()
    assert due(story.definition, story.state) == story.now + STOP_WAIT_MS
    story.wait_until_due()
    assert timeouts_of(story) == ["stop"]


def test_all_that_has_run_out_is_given_up_by_one_tick() -> None:
    limits = Timeouts(schedule_to_start=5.0)
    story = Story(steps("two", ("a", ""), ("b", ""), timeouts=limits))
    story.wait(5_000)
    story.tick()
    assert timeouts_of(story) == ["schedule_to_start", "schedule_to_start"]


def test_a_tick_too_early_changes_nothing() -> None:
    story = story_with(ALL_TIMEOUTS)
    assert story.tick().events == ()
    story.faulted("a")
    assert story.tick().events == ()


def test_tasks_that_ended_or_wait_for_a_person_wait_for_nothing_in_time() -> None:
    ended = story_with(NO_LIMIT)
    ended.done("a")
    assert due(ended.definition, ended.state) is None
    parked = Story(steps("pivot", ("p !", ""), retry=ONCE))
    parked.timed_out("p")
    assert due(parked.definition, parked.state) is None
    assert [sent.phase for sent in parked.sent] == [ACTION]


def test_a_tasks_deadline_turns_it_around() -> None:
    story = Story(steps("linear", ("a", ""), ("b", "a")), bounds=Bounds(deadline=START + 20_000))
    story.done("a")
    assert due(story.definition, story.state) == START + 20_000
    story.wait(19_999)
    assert story.tick().events == ()
    story.wait(1)
    assert clock_due(story.definition, story.state, story.now)
    story.tick()
    assert (story.status, story.state.cause) == ("compensating", "the deadline passed")
    assert story.actions == (Withdraw("b", ACTION), Stop("b", 1))


def test_past_the_point_of_no_return_a_deadline_has_a_person_look_once() -> None:
    definition = steps("leap", ("p !", ""), ("z >", "p"))
    story = Story(definition, bounds=Bounds(deadline=START + 10_000))
    story.wait_until_due()
    reason = "the deadline passed beyond the point of no return"
    assert story.last.events == (e.TaskHeld(story.now, "deadline", reason),)
    assert not clock_due(story.definition, story.state, story.now)
    story.done("p")
    assert (story.status, story.state.reason) == ("parked", reason)
    story.retry()
    assert story.actions == (Dispatch("z", ACTION, 1, 0),)
    story.wait(100_000)
    assert story.tick().events == ()
    story.done("z")
    assert story.status == "succeeded"


def test_a_deadline_is_not_heard_while_a_person_is_to_look_and_then_at_once() -> None:
    story = Story(steps("one", ("a", "")), bounds=Bounds(deadline=START + 10_000))
    story.held("a")
    story.wait(20_000)
    assert due(story.definition, story.state) is None
    assert story.tick().events == ()
    story.retry()
    assert due(story.definition, story.state) == START + 10_000
    story.tick()
    assert story.state.cause == "the deadline passed"


def test_a_deadline_does_not_count_for_a_task_that_is_being_undone() -> None:
    story = Story(steps("one", ("a", "")), bounds=Bounds(deadline=START + 10_000))
    story.cancel()
    story.wait(20_000)
    assert not clock_due(story.definition, story.state, story.now)
    assert story.tick().events == ()
    assert story.state.cause == "changed my mind"


def test_a_deadline_ends_what_waits_for_a_person_or_for_time() -> None:
    saga = Saga("wait").approval("ok").wait("w").sleep("s", 100.0)
    story = Story(saga.define(), bounds=Bounds(deadline=START + 10_000))
    story.wait_until_due()
    assert (story.now, story.status) == (START + 10_000, "compensated")


def test_an_attempt_that_waits_for_a_person_does_not_run_out_of_time() -> None:
    brisk = Timeouts(schedule_to_start=5.0, start_to_close=10.0, schedule_to_close=1_000.0)
    story = Story(steps("asking", ("a", ""), timeouts=brisk))
    waiting = i.Heartbeat(story.now, "a", ACTION, 1, 0, waiting=True)
    assert [type(event).__name__ for event in story.tell(waiting).events] == [
        "AttemptStarted",
        "AttemptHeartbeat",
    ]
    assert story.tell(waiting).events == ()
    story.wait(60_000)
    assert story.tell(i.Tick(story.now)).events == ()
    story.claim("a", delivery=2, worker="second")
    story.wait(13_000)
    story.tell(i.Tick(story.now))
    assert story.step("a").error is not None
    assert story.step("a").error.type == "Timeout.start_to_close"
