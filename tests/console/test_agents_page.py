"""Agents: who is there, how they fare; pausing one and resuming it."""

from __future__ import annotations

import pytest
from harness.asking import Asking
from harness.browser import flaws
from playwright.async_api import Page, expect

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_an_agent_is_shown_with_its_instances_and_numbers(page: Page, api: Asking) -> None:
    await page.goto("/agents")
    shop = page.get_by_role("region", name="shop", exact=True)
    await expect(shop).to_contain_text("Gets all")
    agents = (await api.read("agents"))["agents"]
    [agent] = [one for one in agents if one["agent"] == "shop"]
    [instance] = agent["instances"]
    row = shop.get_by_role("row").nth(1)
    await expect(row).to_contain_text(instance["worker"])
    await expect(row).to_contain_text(instance["sdk"])
    await expect(row).to_contain_text(instance["config"][:10])
    await expect(shop.get_by_text("In flight")).to_be_visible()


async def test_an_agent_that_only_a_saga_names_is_shown_as_absent(page: Page) -> None:
    await page.goto("/agents")
    absent = page.get_by_role("region", name="absent", exact=True)
    await expect(absent).to_contain_text("No instance is connected")


async def test_pausing_and_resuming_an_agent(page: Page, api: Asking) -> None:
    await page.goto("/agents")
    absent = page.get_by_role("region", name="absent", exact=True)
    await absent.get_by_role("button", name="Pause absent").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("nothing is lost")
    await dialog.get_by_label("Note (optional)").fill("the warehouse is closed")
    await dialog.get_by_role("button", name="Pause").click()
    await expect(absent.locator(".panel-head")).to_contain_text("Paused")
    await expect(absent).to_contain_text("paused by console. the warehouse is closed.")
    assert (await breaker_of(api, "absent") or {})["state"] == "paused"
    await absent.get_by_role("button", name="Resume absent").click()
    await dialog.get_by_role("button", name="Resume").click()
    await expect(absent.locator(".panel-head")).to_contain_text("Gets all")
    assert await breaker_of(api, "absent") is None


async def test_what_happens_elsewhere_comes_to_the_page_by_itself(page: Page, api: Asking) -> None:
    await page.goto("/agents")
    absent = page.get_by_role("region", name="absent", exact=True)
    await expect(absent).to_contain_text("Gets all")
    pause = absent.get_by_role("button", name="Pause absent")
    await page.get_by_role("button", name="Pause shop").focus()
    await api.act("agents.pause", agent="absent")
    try:
        await expect(absent).to_contain_text("Paused")
        await expect(pause).to_have_count(0)
        await expect(page.get_by_role("button", name="Pause shop")).to_be_focused()
    finally:
        await api.act("agents.resume", agent="absent")


async def test_an_open_breaker_says_why_and_until_when(page: Page) -> None:
    breaker = {
        "agent": "mail",
        "state": "open",
        "since": "2026-11-30T04:00:00Z",
        "until": "2026-11-30T04:01:00Z",
        "reason": "21 of 24 attempts failed within 10 s",
    }
    mail = {"agent": "mail", "instances": [], "queued": 7, "in_flight": 0, "breaker": breaker}
    await page.route("**/api/agents*", lambda route: route.fulfill(json={"agents": [mail]}))
    await page.goto("/agents")
    panel = page.get_by_role("region", name="mail", exact=True)
    await expect(panel).to_contain_text("Breaker open")
    await expect(panel).to_contain_text("21 of 24 attempts failed within 10 s.")
    await expect(panel.get_by_role("button", name="Resume mail")).to_be_visible()


async def test_instances_that_are_configured_otherwise_stand_out(page: Page) -> None:
    def instance(worker: str, config: str) -> dict[str, object]:
        return {
            "agent": "mail", "worker": worker, "actions": ["send"], "host": "h", "pid": 1,
            "busy": 0, "slots": 4, "config": config, "sdk": "headway 0.3.0",
        }  # fmt: skip

    instances = [instance("a", "1111"), instance("b", "1111"), instance("c", "2222")]
    mail = {"agent": "mail", "instances": instances, "queued": 0, "in_flight": 0}
    await page.route("**/api/agents*", lambda route: route.fulfill(json={"agents": [mail]}))
    await page.goto("/agents")
    await expect(page.locator(".tag-differs")).to_have_count(1)
    await expect(page.get_by_role("row").filter(has_text="2222")).to_contain_text("differs")


async def test_without_any_agent_it_says_how_to_start_one(page: Page) -> None:
    await page.route("**/api/agents*", lambda route: route.fulfill(json={"agents": []}))
    await page.goto("/agents")
    await expect(page.get_by_text("No agent is known")).to_be_visible()


async def test_agents_are_accessible_and_fit(page: Page) -> None:
    await page.goto("/agents")
    await expect(page.get_by_role("region", name="shop", exact=True)).to_be_visible()
    assert await flaws(page) == []


async def breaker_of(api: Asking, agent: str) -> dict[str, object] | None:
    agents = (await api.read("agents"))["agents"]
    [found] = [one for one in agents if one["agent"] == agent]
    breaker: dict[str, object] | None = found["breaker"]
    return breaker
