"""Commands for limits on agents, sagas and keys: set, list, remove."""

from __future__ import annotations

import re
from typing import Annotated, Literal

import typer
from headway.agents.limit_views import RATE_MAX, RATE_MIN, LimitList, LimitRef, rate_text
from headway.cli.failures import BadInput
from headway.cli.interventions import person
from headway.cli.terminal import Terminal, with_flags
from headway.cli.wording import moment, table_of
from rich.console import RenderableType
from rich.text import Text

PANEL = "Look at the system"

_RATE = re.compile(r"(?P<count>[0-9]+(\.[0-9]+)?)/(?P<unit>[smh])")
_UNIT_S = {"s": 1, "m": 60, "h": 3_600}

Scope = Annotated[
    Literal["agent", "saga", "key"], typer.Argument(help="What is limited: agent, saga or key.")
]
Name = Annotated[
    str,
    typer.Argument(
        help="An agent, a saga, or AGENT:ATTRIBUTE: each value of that attribute of a task is "
        "limited by itself, as in payments:customer."
    ),
]


def add_to(app: typer.Typer) -> None:
    """Register this module's commands as the group `limits`."""
    group = typer.Typer(
        no_args_is_help=True,
        help="How much at a time, and how much a second: of an agent, a saga, or a key.",
    )
    for name, function in (("set", set_limit), ("list", list_limits), ("remove", remove_limit)):
        group.command(name)(with_flags(function, ("json", "nats_url", "data")))
    app.add_typer(group, name="limits", rich_help_panel=PANEL)


def set_limit(
    terminal: Terminal,
    scope: Scope,
    name: Name,
    rate: Annotated[
        str | None, typer.Option(metavar="N/s", help="Attempts begun: 50/s, 100/m or 1000/h.")
    ] = None,
    burst: Annotated[
        int | None,
        typer.Option(min=1, help="How many may begin at once; else 0.2 s of the rate, and one."),
    ] = None,
    concurrency: Annotated[int | None, typer.Option(min=1, help="Attempts at a time.")] = None,
) -> None:
    """Declare a limit, in place of what was declared before.

    It holds within two seconds, also for what waits already. Work over the limit waits; what is
    urgent (`headway submit --priority`) goes first, and compensations before all else.
    """
    per_second = rate_from(rate)
    view = terminal.ask(
        lambda client: client.set_limit(
            scope, name, rate=per_second, burst=burst, concurrency=concurrency, by=person()
        )
    )
    terminal.show(LimitList(limits=[view]), table)


def list_limits(terminal: Terminal) -> None:
    """List what is declared, how much waits for it and how much goes on."""
    terminal.show(terminal.ask(lambda client: client.limits()), table)


def remove_limit(terminal: Terminal, scope: Scope, name: Name) -> None:
    """Remove a limit; what waits for it goes on."""
    limit = terminal.ask(lambda client: client.remove_limit(scope, name, by=person()))
    terminal.show(limit, removed)


def rate_from(text: str | None) -> float | None:
    """Attempts a second from `50/s`, `100/m` or `1000/h`."""
    if text is None:
        return None
    found = _RATE.fullmatch(text)
    if found is None:
        raise BadInput(f"a rate is written 50/s, 100/m or 1000/h, not {text!r}")
    rate = float(found["count"]) / _UNIT_S[found["unit"]]
    if not RATE_MIN <= rate <= RATE_MAX:
        raise BadInput(
            f"a rate is from {rate_text(RATE_MIN)} to {RATE_MAX:.0f}/s, not {text!r}; "
            "`headway agents pause` stops an agent"
        )
    return rate


def table(listed: LimitList) -> RenderableType:
    found = table_of("limits", "name", "rate", "burst", "at a time", "waiting", "running", "since")
    for limit in listed.limits:
        found.add_row(
            Text(limit.scope),
            Text(limit.name),
            Text("" if limit.rate is None else rate_text(limit.rate), justify="right"),
            Text("" if limit.rate is None else str(limit.burst), justify="right"),
            Text("" if limit.concurrency is None else str(limit.concurrency), justify="right"),
            Text(str(limit.waiting), justify="right"),
            Text(str(limit.running), justify="right"),
            Text(f"{moment(limit.set_at)} by {limit.set_by}", no_wrap=True),
        )
    return found


def removed(limit: LimitRef) -> RenderableType:
    return Text(f"no limit any more on {limit.scope} {limit.name}")
