"""Errors of the agent SDK.

HeadwayError
├── DeclarationError       an agent or handler is declared wrongly (raised at import)
├── InvalidInput           bytes or arguments that do not fit; names the field
├── Reject                 raised by a handler: business failure, no lasting effect
├── Retry                  raised by a handler: not now, try again later
├── ToolError              raised by a tool: it failed; says whether trying again makes sense
├── ToolFailed             a called tool failed for good; the journal remembers it
├── Unavailable            no coordinator or no server answered in time
│   └── NotLetIn           a server answered: our key, password or token is none that it knows
├── Superseded             another worker has this attempt now: stop, and leave no trace
├── Halted                 a person must look before this attempt goes on
│   └── JournalMismatch    a call is not the one that the journal has at its place
└── Refused                the coordinator said no, with the reason
    ├── NotFound           no such task or saga
    └── Conflict           the same id with another body, or a state that forbids it
"""

from __future__ import annotations


class HeadwayError(Exception):
    """Root of everything this SDK raises on purpose."""


class DeclarationError(HeadwayError):
    """An agent, action or compensation is declared wrongly; the text says how to mend it."""


class InvalidInput(HeadwayError):
    """Bytes or arguments that do not fit what is expected; the text names the field."""


class Reject(HeadwayError):
    """A handler's business failure: the action ended and left no effect behind.

    The step fails at once, without a retry, and is not compensated (its predecessors are).
    `kind` is what `Retry.non_retryable_error_types` and people see; it defaults to "Reject".
    """

    def __init__(self, reason: str, *, kind: str = "Reject") -> None:
        super().__init__(reason)
        self.reason = reason
        self.kind = kind


class Retry(HeadwayError):
    """A handler's request to be tried again, after `after` seconds or by the step's policy."""

    def __init__(self, reason: str = "try again later", *, after: float | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.after = after


class ToolError(HeadwayError):
    """A tool's own word on how it failed; any other exception says neither.

    `retryable`: another try may end better. `no_effect`: it certainly left nothing behind.
    """

    def __init__(self, reason: str, *, retryable: bool = True, no_effect: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retryable = retryable
        self.no_effect = no_effect


class ToolFailed(HeadwayError):
    """A tool failed, and is not tried again in this attempt.

    `kind` is the type of what it raised (or "Timeout"), `reason` its text. `no_effect`: it
    certainly left nothing behind. `retryable`: another attempt of the step calls it again.
    """

    def __init__(
        self, tool: str, kind: str, reason: str, *, retryable: bool = True, no_effect: bool = False
    ) -> None:
        super().__init__(f"tool {tool!r} failed: {kind}: {reason}")
        self.tool = tool
        self.kind = kind
        self.reason = reason
        self.retryable = retryable
        self.no_effect = no_effect


class Superseded(HeadwayError):
    """Another worker has this attempt now; whatever is still done here is of no interest."""


class Halted(HeadwayError):
    """A guard stopped the attempt; its task is parked until a person has looked.

    `kind` says which: "Unsettled", "LoopDetected", "BudgetSpent", "ToolNotAllowed", "Tripped",
    "JournalMismatch".
    """

    def __init__(self, reason: str, *, kind: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.kind = kind


class JournalMismatch(Halted):
    """The handler called another tool, or with other arguments, than the journal has at this
    place: its code changed, or it is not deterministic between its calls."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, kind="JournalMismatch")


class Unavailable(HeadwayError):
    """Nobody answered in time: is a coordinator running, and are the servers reachable?"""


class NotLetIn(Unavailable):
    """A NATS server is there, and does not let us in as we are; the text says what to do."""


class Refused(HeadwayError):
    """The coordinator refused a request; `code` is an HTTP-like status, the text the reason,
    `kind` the problem's type ("about:blank" if it says no more than the code)."""

    def __init__(self, reason: str, *, code: int = 400, kind: str = "about:blank") -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code
        self.kind = kind


class NotFound(Refused):
    """There is no such task, saga or step."""


class Conflict(Refused):
    """The request contradicts what is stored: same id with another body, or a state forbids it."""
