"""Delays between attempts: their bounds, their jitter, and when there is no further attempt."""

from __future__ import annotations

import pytest
from headway.sagas import DefinitionError, Retry
from headway.sagas.retry import DURATION_MAX_S, JITTER_SHARE
from hypothesis import given, settings
from hypothesis import strategies as st

_policies = st.builds(
    Retry,
    initial_interval=st.floats(0.001, 100.0),
    backoff_coefficient=st.floats(1.0, 100.0),
    maximum_interval=st.floats(100.0, DURATION_MAX_S),
)
_attempts = st.integers(1, 10_000)


@settings(derandomize=True, max_examples=300, deadline=None)
@given(_policies, _attempts, st.floats(-1.0, 1.0))
def test_a_delay_lies_within_its_jitter_of_the_policys(
    policy: Retry, attempt: int, jitter: float
) -> None:
    plain = policy.delay_ms(attempt, 0.0)
    moved = policy.delay_ms(attempt, jitter)
    assert 0 <= plain <= policy.maximum_interval * 1000 + 1
    assert abs(moved - plain) <= plain * JITTER_SHARE + 1
    assert policy.delay_ms(attempt + 1, 0.0) >= plain


def test_delays_grow_by_the_coefficient_up_to_the_maximum() -> None:
    policy = Retry(initial_interval=1.0, backoff_coefficient=2.0, maximum_interval=10.0)
    delays = [policy.delay_ms(attempt, 0.0) for attempt in range(1, 7)]
    assert delays == [1000, 2000, 4000, 8000, 10_000, 10_000]


def test_the_last_attempt_that_is_allowed_is_the_maximum() -> None:
    policy = Retry(maximum_attempts=3)
    assert [policy.allows(attempt, "Fault") for attempt in (1, 2, 3, 4)] == [
        *(True, True, False, False)
    ]
    assert Retry(maximum_attempts=0).allows(10**9, "Fault")
    assert not Retry(maximum_attempts=1).allows(1, "Fault")


def test_error_types_that_are_not_retried_are_matched_by_their_exact_name() -> None:
    policy = Retry(non_retryable_error_types=("CardStolen",))
    assert not policy.allows(1, "CardStolen")
    assert policy.allows(1, "CardStolenMaybe")


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"initial_interval": 0}, "initial_interval must be more than 0"),
        ({"initial_interval": -1.0}, "initial_interval must be more than 0"),
        ({"initial_interval": float("nan")}, "initial_interval must be more than 0"),
        ({"maximum_interval": float("inf")}, "maximum_interval must be more than 0 and at most"),
        ({"initial_interval": 300.0}, "longer than maximum_interval .100.0 s.: lower the first"),
        ({"backoff_coefficient": 0.5}, "backoff_coefficient must be between 1 and 100"),
        ({"maximum_attempts": -1}, "maximum_attempts must be 0"),
        ({"maximum_attempts": 2**31}, "maximum_attempts must be 0"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(wrong: dict[str, float], why: str) -> None:
    with pytest.raises(DefinitionError, match=why):
        Retry(**wrong)  # type: ignore[arg-type]
