"""Does the work of `headway agents grant|revoke|list`. Needs the extra `coordinator`.

An agent's key is made here, and its secret half goes to one file or to standard output, once.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from pathlib import Path

from headway.agents import credentials
from headway.agents.connection import connect
from headway.agents.credentials import Credentials
from headway.agents.errors import Unavailable
from headway.agents.nkeys import UserKey, new_seed
from headway.cli import output
from headway.cli.addresses import NATS_URL
from headway.cli.databasing import in_database
from headway.cli.failures import BadInput
from headway.cli.interventions import person
from headway.cli.terminal import Terminal
from headway.cli.wording import moment, table_of
from headway.coordinator.grants import Grant, grants_in
from headway.coordinator.permissions import entry
from rich.console import RenderableType

LET_IN_WITHIN_S = 10.0
TRY_S = 1.0

BY_HAND = (
    "where you run nats-server yourself, put this among the users of its authorization block, and "
    "have it read its configuration again (nats-server --signal reload):"
)


def grant(terminal: Terminal, postgres_url: str | None, agent: str, creds: Path | None) -> None:
    """Make a key, let it in, and give its secret half out."""
    if creds is not None and creds.exists():
        raise BadInput(f"{creds} exists; take another name for the credentials")
    seed = new_seed()
    key = UserKey.of(seed)
    made = in_database(
        terminal, postgres_url, grants_in, lambda grants: grants.grant(agent, key.public, person())
    )
    if creds is not None:
        credentials.write(creds, agent, seed)
    snippet = None if _is_managed(terminal, postgres_url) else entry(made.user)
    if terminal.as_json:
        told: dict[str, object] = {"agent": agent, "public_key": key.public}
        told |= {"seed": seed} if creds is None else {"creds": str(creds)}
        output.write_json(told | ({} if snippet is None else {"authorization": snippet}))
    elif creds is None:
        output.data_console().print(credentials.text_of(agent, seed), end="", soft_wrap=True)
        output.narrate("keep this in a file of mode 600; it is not shown again")
    if snippet is None:
        asyncio.run(_until_let_in(terminal, Credentials(agent, key)))
    elif not terminal.as_json:
        output.narrate(f"{BY_HAND}\n{snippet}")
    where = "" if creds is None else f": headway agent MODULE:NAME --creds {creds}"
    output.narrate(f"granted {key.public} to agent {agent}{where}")


def revoke(terminal: Terminal, postgres_url: str | None, agent: str, key: str) -> None:
    """Shut a key of an agent out, or all of them."""
    revoked = in_database(
        terminal, postgres_url, grants_in, lambda grants: grants.revoke(agent, person(), key)
    )
    if terminal.as_json:
        output.write_json({"agent": agent, "revoked": revoked})
    output.narrate(f"revoked {', '.join(revoked)} of agent {agent}")
    if not _is_managed(terminal, postgres_url):
        output.narrate(
            "where you run nats-server yourself, take it out of its authorization block, and have "
            "it read its configuration again (nats-server --signal reload)"
        )


def show_all(terminal: Terminal, postgres_url: str | None) -> None:
    """List every key that was ever granted."""
    found = in_database(terminal, postgres_url, grants_in, lambda grants: grants.all())
    if not terminal.as_json:
        output.data_console().print(_table(found))
        return
    for each in found:
        output.write_json(
            {
                "agent": each.agent,
                "public_key": each.public_key,
                "granted_at": each.granted_at.isoformat(),
                "granted_by": each.granted_by,
                "revoked_at": None if each.revoked_at is None else each.revoked_at.isoformat(),
                "revoked_by": each.revoked_by,
            }
        )


def _table(grants: list[Grant]) -> RenderableType:
    table = table_of("agent", "public key", "granted", "by", "revoked", "by")
    for each in grants:
        revoked = "" if each.revoked_at is None else moment(each.revoked_at)
        granted = moment(each.granted_at)
        table.add_row(
            each.agent, each.public_key, granted, each.granted_by, revoked, each.revoked_by
        )
    return table


def _is_managed(terminal: Terminal, postgres_url: str | None) -> bool:
    """Whether it is a `headway up` that runs the servers, which sees to the rest itself."""
    given = postgres_url or terminal.given.nats_url or os.environ.get(NATS_URL)
    return not given


async def _until_let_in(terminal: Terminal, granted: Credentials) -> None:
    """Until the server lets this key in."""
    url = terminal.addresses(who="agents").nats_url
    deadline = time.monotonic() + LET_IN_WITHIN_S
    logging.getLogger("headway.agents.connection").setLevel(logging.ERROR)  # not yet is no news
    while True:
        try:
            connection = await connect(
                url, name="headway-grant", credentials=granted, timeout=TRY_S
            )
        except Unavailable as error:
            if time.monotonic() > deadline:
                raise Unavailable(f"the key is granted, but not let in yet: {error}") from None
            continue
        await connection.close()
        return
