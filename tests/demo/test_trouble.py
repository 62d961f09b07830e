"""Trouble comes by seed, and of every kind."""

from __future__ import annotations

from headway.demo.sagas import ATTEMPT_LIMIT_S
from headway.demo.trouble import trouble


def test_the_same_call_meets_the_same_trouble_whatever_happened_before() -> None:
    first = trouble(7, "O-1", "payments.charge", 0)
    assert trouble(7, "O-1", "payments.charge", 0) == first
    assert trouble(7, "O-1", "payments.charge", 1) != first
    assert trouble(8, "O-1", "payments.charge", 0) != first


def test_calls_are_mostly_prompt_and_now_and_then_late_failing_or_unanswered() -> None:
    met = [trouble(1, f"O-{n}", "payments.charge", 0) for n in range(2000)]
    assert 0.01 < sum(one.fails for one in met) / len(met) < 0.06
    assert 0.01 < sum(one.drops for one in met) / len(met) < 0.06
    assert any(one.hold_s > ATTEMPT_LIMIT_S for one in met), "some are held past the limit"
    assert any(one.late_s > ATTEMPT_LIMIT_S for one in met), "some are answered past the limit"
    prompt = [one for one in met if one.hold_s < 0.1 and not (one.fails or one.drops or one.late_s)]
    assert len(prompt) > 0.85 * len(met)
