"""What `headway status` says of a step whose agent is limited or paused, and not there either."""

from __future__ import annotations

from harness.coordination import registered
from harness.eventually import eventually
from harness.shop import linear


async def waits_for(system, task):
    [step] = (await system.client.status(task)).steps
    return step.waiting_for or ""


async def test_under_a_limit_an_agent_that_is_not_there_is_told_before_its_slot(system):
    async with system.coordinating() as [coordinator]:
        await registered(system.client, linear(steps="a"))
        await system.client.set_limit("agent", "shop", rate=1.0)
        await eventually(lambda: coordinator._admission.declared.active, 5)
        tasks = [(await system.client.submit("linear", {"number": n})).task for n in range(5)]
        told = [
            f"agent 'shop' (no instance is connected), then a slot of agent shop: 1/s, {queue}"
            for queue in ("it is the next", *(f"{before} before it" for before in range(1, 5)))
        ]

        async def absent() -> bool:
            return sorted([await waits_for(system, task) for task in tasks]) == sorted(told)

        await eventually(absent, 5)
        async with system.working():

            async def present() -> bool:
                said = [await waits_for(system, task) for task in tasks]
                return "no instance" not in "".join(said) and "a slot of" in said[-1]

            await eventually(present, 5)
            await system.client.remove_limit("agent", "shop")
            await system.all_settled(5)


async def test_a_paused_agent_that_is_not_there_is_told_as_both(system):
    async with system.coordinating():
        await registered(system.client, linear(steps="a"))
        await system.client.pause_agent("shop", "maintenance", by="ada")
        task = (await system.client.submit("linear", {})).task

        async def both() -> bool:
            said = await waits_for(system, task)
            return said.startswith("agent 'shop' (no instance is connected; paused by ada since ")

        await eventually(both, 5)
        await system.client.resume_agent("shop", by="ada")
        async with system.working():
            await system.all_settled(1)
