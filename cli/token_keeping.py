"""Does the work of `headway tokens`. Needs the extra `coordinator`."""

from __future__ import annotations

from headway.cli import output
from headway.cli.databasing import in_database
from headway.cli.interventions import person
from headway.cli.terminal import Terminal
from headway.cli.wording import moment, table_of
from headway.coordinator.token_making import token_making
from headway.coordinator.tokens import Token
from rich.console import RenderableType


def create(terminal: Terminal, postgres_url: str | None, name: str, role: str) -> None:
    """Make a token; its secret goes to standard output, and nowhere else."""
    token = in_database(
        terminal, postgres_url, token_making, lambda making: making.create(name, role, by=person())
    )
    if terminal.as_json:
        output.write_json({"name": name, "role": role, "token": token})
    else:
        output.data_console().print(token, soft_wrap=True)
        output.narrate(f"{name} may now show it as HEADWAY_TOKEN; it is not shown again")


def show_all(terminal: Terminal, postgres_url: str | None) -> None:
    """List them, without digests."""
    found = in_database(terminal, postgres_url, token_making, lambda making: making.list())
    if not terminal.as_json:
        output.data_console().print(_table(found))
        return
    for each in found:
        revoked = None if each.revoked_at is None else each.revoked_at.isoformat()
        output.write_json(
            {
                "name": each.name,
                "role": each.role,
                "id": each.id,
                "made_at": each.made_at.isoformat(),
                "revoked_at": revoked,
            }
        )


def revoke(terminal: Terminal, postgres_url: str | None, name: str) -> None:
    """Revoke one, and say so when it was the last."""
    left = in_database(
        terminal, postgres_url, token_making, lambda making: making.revoke(name, by=person())
    )
    output.narrate(f"revoked {name}")
    if not left:
        output.narrate(
            "no token is left: anybody may ask for anything again, unless coordinators run with "
            "HEADWAY_REQUIRE_TOKENS=1"
        )


def _table(tokens: list[Token]) -> RenderableType:
    table = table_of("name", "role", "id", "made", "revoked")
    for each in tokens:
        revoked = "" if each.revoked_at is None else moment(each.revoked_at)
        table.add_row(each.name, each.role, each.id, moment(each.made_at), revoked)
    return table
