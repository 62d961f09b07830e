"""A whole run: a nats-server, the stand-in, the agent, and every check in turn."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from secrets import token_urlsafe

from headway.agents import credentials
from headway.agents.catalogue_views import Presence
from headway.agents.connection import connect
from headway.agents.errors import InvalidInput, Unavailable
from headway.agents.nkeys import UserKey, new_seed
from headway.conform import compensations, deliveries, outages, outcomes, refusals, reports
from headway.conform.actions import ACTIONS
from headway.conform.agent_process import CREDS, NATS_URL, AgentProcess
from headway.conform.kit import Check, Kit, NotTested
from headway.conform.order import endings
from headway.conform.report import Finding, Report, report
from headway.conform.seen import Broken
from headway.conform.standin import StandIn
from headway.coordinator.logfile import LogFile
from headway.coordinator.nats_server import NatsServer
from headway.coordinator.permissions import User, of_agent
from headway.coordinator.ports import free_port
from headway.coordinator.serveruser import server_user
from headway.coordinator.supervisor import Supervised
from pydantic import ValidationError

AT_ONCE = 8
COMES_WITHIN_S = 60.0
SAYS_WITHIN_S = 2.0
MODULES = (outcomes, compensations, deliveries, reports, refusals, outages)
CHECKS: tuple[Check, ...] = tuple(check for module in MODULES for check in module.CHECKS.all)

Tell = Callable[[str], None]


async def run(
    agent: str, folder: Path, command: Sequence[str], tell: Tell, *, only: Sequence[str] = ()
) -> Report:
    """Test `agent`, which `command` starts, or else a person.

    What the server and the agent write is in `folder`. Unavailable: no agent came within
    COMES_WITHIN_S. InvalidInput: one came without the conformance actions.
    """
    async with _serving(agent, folder) as (standin, nats, environment):
        tell(_invitation(agent, environment) if not command else f"starting {' '.join(command)}")
        process = AgentProcess(command, environment, folder / "agent.log") if command else None
        kit = Kit(standin, nats, process)
        try:
            await _arrived(kit)
            await _check_actions(kit)
            return report(agent, await _findings(kit, only))
        finally:
            if process is not None:
                await process.stop()


@asynccontextmanager
async def _serving(
    agent: str, folder: Path
) -> AsyncIterator[tuple[StandIn, Supervised, dict[str, str]]]:
    """A nats-server for the kit and the agent alone, and what tells the agent where it is."""
    seed, creds = new_seed(), folder / f"{agent}.creds"
    credentials.write(creds, agent, seed)
    owner = User("coordinator", token_urlsafe())
    user = User(public_key=UserKey.of(seed).public, permissions=of_agent(agent))
    port = free_port()
    server = NatsServer(
        folder / "nats",
        LogFile(folder / "nats.log"),
        port=port,
        monitoring_port=free_port(frozenset({port})),
        users=[owner, user],
        run_as=server_user(),
    )
    nats = Supervised(server)
    await nats.start()
    try:
        async with await connect(server.url, name="headway-conform") as connection:
            standin = StandIn(connection, agent)
            await standin.begin()
            yield standin, nats, {NATS_URL: f"nats://127.0.0.1:{port}", CREDS: str(creds)}
    finally:
        await nats.stop()


def _invitation(agent: str, environment: dict[str, str]) -> str:
    words = " ".join(f"{name}={value}" for name, value in environment.items())
    return (
        f"waiting for agent {agent}; start it with: {words}\n"
        "It is tested on this server alone: one that is connected elsewhere is not looked for."
    )


async def _arrived(kit: Kit) -> None:
    """Wait until the agent has asked for its key."""
    process, deadline = kit.process, time.monotonic() + COMES_WITHIN_S
    while True:
        try:
            await kit.standin.log.until(
                lambda: next(kit.standin.log.of("key"), None), 0.2, "the agent"
            )
            return
        except Broken:
            if process is not None and not process.running:
                end = process.log.tail()
                raise Unavailable(f"the agent ended before it asked for its key:\n{end}") from None
            if time.monotonic() > deadline:
                raise Unavailable(
                    f"agent {kit.standin.agent!r} did not ask for its key within "
                    f"{COMES_WITHIN_S:g} s: is that its name, does it connect to {NATS_URL}, and "
                    f"are its credentials those in {CREDS}?"
                ) from None


async def _check_actions(kit: Kit) -> None:
    """Refuse an agent that says of itself that it does not do what the kit will ask for."""
    log = kit.standin.log
    with suppress(Broken):  # whether it says anything of itself is for a check to find
        seen = await log.until(lambda: next(log.of("presence"), None), SAYS_WITHIN_S, "presence")
        with suppress(ValidationError):
            said = Presence.model_validate_json(seen.body)
            if lacking := [each for each in ACTIONS if each not in said.actions]:
                raise InvalidInput(
                    f"agent {kit.standin.agent!r} has no action {', '.join(lacking)}: the kit asks "
                    "for conformance actions, which an agent has for its tests alone; section 9 of "
                    "agents/asyncapi.yaml says what they do"
                )


async def _findings(kit: Kit, only: Sequence[str]) -> list[Finding]:
    chosen = [each for each in CHECKS if not only or each.name in only]
    gate = asyncio.Semaphore(AT_ONCE)

    async def beside_others(check: Check) -> Finding:
        async with gate:
            return await _finding(kit, check)

    beside = [each for each in chosen if not each.alone]
    found = list(await asyncio.gather(*map(beside_others, beside)))
    found += [await _finding(kit, each) for each in chosen if each.alone]
    return [*found, _each_ended_once(kit)]


async def _finding(kit: Kit, check: Check) -> Finding:
    began = time.monotonic()
    found = Finding(check=check.name, level=check.level, says=check.says, verdict="holds")
    try:
        await check.run(kit)
    except NotTested as why:
        found.verdict, found.why = "not tested", str(why)
    except Exception as error:
        found.verdict = "FAILS" if check.level == "MUST" else "missing"
        found.why = str(error) if isinstance(error, Broken) else f"{type(error).__name__}: {error}"
    found.took_s = round(time.monotonic() - began, 2)
    return found


def _each_ended_once(kit: Kit) -> Finding:
    """Over all that was sent."""
    try:
        twice = [str(order.task) for order, ids in endings(kit.orders) if len(ids) > 1]
        why = f"tasks with several: {', '.join(twice)}" if twice else ""
    except Broken as broken:
        why = str(broken)
    return Finding(
        check="ended-once",
        level="MUST",
        says="of all that it was sent, no attempt is ended by two events",
        verdict="FAILS" if why else "holds",
        why=why,
    )
