"""A whole drill: faults, round after round, then the audit; and nothing is left behind."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from uuid import UUID

from headway.agents.client import Client
from headway.agents.errors import HeadwayError, Refused
from headway.drills.crew import Crew
from headway.drills.downstream import Downstream
from headway.drills.faults import Fault
from headway.drills.handlers import AGENT, SAGA, saga
from headway.drills.report import Report, Trial, differences, report
from headway.drills.setting import Setting

END_S = 30.0  # for tasks that a failed trial left open

Tell = Callable[[str], None]


async def run(
    client: Client,
    faults: Sequence[Fault],
    *,
    rounds: int,
    environment: Mapping[str, str],
    tell: Tell,
) -> Report:
    """Cause each of `faults`, `rounds` times. `environment` tells agents where the servers are.

    Refused: another drill is at work.
    """
    await _alone(client)
    with tempfile.TemporaryDirectory(prefix="headway-drill-") as folder:
        downstream = Downstream(Path(folder, "downstream.sqlite"))
        crew = Crew(Path(folder, "agents.log"), environment)
        setting = Setting(client, crew, downstream)
        try:
            await client.register(saga().define())
            trials = []
            for number in range(1, rounds + 1):
                for fault in faults:
                    tell(f"{fault.name}: {fault.does}")
                    trials.append(await _trial(setting, fault, number))
        finally:
            left = await asyncio.shield(_clear_up(setting))
        found = report(trials, [*left, *await _audit(setting)])
        downstream.close()
        return found


async def _alone(client: Client) -> None:
    agents = (await client.agents()).agents
    if any(one.instances for one in agents if one.agent == AGENT):
        raise Refused(f"another drill is at work: agents {AGENT!r} are there; wait until it ends")


async def _trial(setting: Setting, fault: Fault, number: int) -> Trial:
    before = len(setting.tasks)
    trial = Trial(
        fault=fault.name,
        round=number,
        recovered=False,
        bound_s=fault.bound_s,
        how=fault.how,
        why=fault.why,
    )
    try:
        await setting.at_strength()
        trial.took_s = await fault.run(setting)
        trial.recovered = True
    except HeadwayError as error:
        trial.how = str(error)
    trial.tasks = setting.tasks[before:]
    return trial


async def _clear_up(setting: Setting) -> list[str]:
    try:
        return await _end_tasks(setting)
    finally:
        await setting.crew.end()


async def _end_tasks(setting: Setting) -> list[str]:
    """End what failed trials left open; returns which tasks could not be."""
    setting.crew.thaw()
    setting.crew.fill_up(1)
    open_tasks: list[UUID] = []
    for task in setting.tasks:
        with suppress(HeadwayError):
            if not (await setting.client.status(task)).ended:
                open_tasks.append(task)
                await setting.client.cancel(task, "the drill is over", by=SAGA)
    left = []
    for task in open_tasks:
        try:
            view = await setting.client.result(task, timeout=END_S)
        except HeadwayError as error:
            left.append(f"task {task} is left open: {error}")
        else:
            left += [] if view.ended else [f"task {task} is left {view.status}: {view.reason}"]
    return left


async def _audit(setting: Setting) -> list[str]:
    """Compare the downstream's log to the histories, task by task."""
    found: list[str] = []
    for task in setting.tasks:
        try:
            history = await setting.client.history(task)
        except HeadwayError as error:
            found.append(f"task {task} has no history: {error}")
            continue
        effects = setting.downstream.effects(task)
        found += differences(task, history, effects, setting.downstream.payments(task))
    return found
