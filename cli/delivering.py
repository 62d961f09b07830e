"""Whether an agent gets its commands, in words."""

from __future__ import annotations

from headway.agents.limit_views import BreakerView
from headway.cli.output import printable
from headway.cli.wording import REASON_CHARACTERS_MAX, cut, moment


def delivery(breaker: BreakerView) -> str:
    """How a breaker stands, since when, and what it waits for."""
    since = moment(breaker.since)
    match breaker.state:
        case "closed":
            text = "gets its commands"
        case "open":
            until = "" if breaker.until is None else f", next probe {moment(breaker.until)}"
            text = f"gets none since {since}{until}"
        case "probing":
            text = f"gets one at a time since {since}, until one succeeds"
        case "paused":
            text = f"paused by {breaker.by or 'a person'} since {since}"
    reason = f": {breaker.reason}" if breaker.reason and breaker.state != "closed" else ""
    return printable(cut(f"{text}{reason}", REASON_CHARACTERS_MAX))
