"""Retry policies and timeouts, as values. Durations are seconds for people, ms inside.

Names and meanings follow Temporal's RetryPolicy and activity timeouts.
"""

from __future__ import annotations

from dataclasses import dataclass

from headway.sagas.errors import DefinitionError
from pydantic import ConfigDict

JITTER_SHARE = 0.2  # a delay is moved by at most this share of itself, either way
DURATION_MAX_S = 366 * 86_400.0

STRANGERS_REFUSED = ConfigDict(extra="forbid")  # a misspelt field is no default


@dataclass(frozen=True, slots=True)
class Retry:
    """When and how often to try again.

    Attributes:
        initial_interval: seconds before the second attempt.
        backoff_coefficient: factor from one delay to the next, at least 1.
        maximum_interval: seconds that no delay exceeds.
        maximum_attempts: attempts in all; 1 is none again, 0 is without limit.
        non_retryable_error_types: failure types (exact names) that are not tried again.
    """

    initial_interval: float = 1.0
    backoff_coefficient: float = 2.0
    maximum_interval: float = 100.0
    maximum_attempts: int = 5
    non_retryable_error_types: tuple[str, ...] = ()

    __pydantic_config__ = STRANGERS_REFUSED

    def __post_init__(self) -> None:
        _check_duration("initial_interval", self.initial_interval)
        _check_duration("maximum_interval", self.maximum_interval)
        if self.initial_interval > self.maximum_interval:
            raise DefinitionError(
                f"initial_interval ({self.initial_interval} s) is longer than maximum_interval "
                f"({self.maximum_interval} s): lower the first or raise the second"
            )
        if not 1.0 <= self.backoff_coefficient <= 100.0:
            raise DefinitionError("backoff_coefficient must be between 1 and 100")
        if not 0 <= self.maximum_attempts < 2**31:
            raise DefinitionError("maximum_attempts must be 0 (no limit) or a 32-bit number")

    def delay_ms(self, attempt: int, jitter: float) -> int:
        """Milliseconds to wait after `attempt` (1, 2, …) failed; `jitter` is from -1 to 1."""
        growth = self.backoff_coefficient ** min(attempt - 1, 64)
        seconds = min(self.initial_interval * growth, self.maximum_interval)
        return max(0, round(seconds * 1000 * (1 + JITTER_SHARE * jitter)))

    def allows(self, attempt: int, error_type: str) -> bool:
        """Whether another attempt may follow `attempt`, which failed with `error_type`."""
        if error_type in self.non_retryable_error_types:
            return False
        return self.maximum_attempts == 0 or attempt < self.maximum_attempts


@dataclass(frozen=True, slots=True)
class Timeouts:
    """The four timeouts of a step, in seconds; None is no limit.

    A timeout means that the outcome is unknown, never that the attempt failed.

    Attributes:
        schedule_to_start: from a dispatch until an agent begins with it.
        start_to_close: one attempt, from its begin, but for the time in which a person is to
            approve a tool's call; the worker stops the handler then.
        schedule_to_close: from the first dispatch to the end, all retries included.
        heartbeat: the longest silence between two heartbeats of a handler.
    """

    schedule_to_start: float | None = None
    start_to_close: float | None = 60.0
    schedule_to_close: float | None = None
    heartbeat: float | None = None

    __pydantic_config__ = STRANGERS_REFUSED

    def __post_init__(self) -> None:
        for name in ("schedule_to_start", "start_to_close", "schedule_to_close", "heartbeat"):
            value = getattr(self, name)
            if value is not None:
                _check_duration(name, value)
        whole, one = self.schedule_to_close, self.start_to_close
        if whole is not None and one is not None and one > whole:
            raise DefinitionError(
                f"start_to_close ({one} s) cannot hold within schedule_to_close ({whole} s): "
                "lower the first or raise the second"
            )
        if self.heartbeat is not None and one is not None and self.heartbeat > one:
            raise DefinitionError(
                f"heartbeat ({self.heartbeat} s) is longer than start_to_close ({one} s): "
                "it could never lapse"
            )


def _check_duration(name: str, seconds: float) -> None:
    if not 0 < seconds <= DURATION_MAX_S:
        raise DefinitionError(f"{name} must be more than 0 and at most {DURATION_MAX_S:.0f} s")
