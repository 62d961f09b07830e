"""What stands around every page: the way in, the way from one page to another, and what is shown
while nobody answers."""

from __future__ import annotations

import re

import pytest
from harness.browser import window
from headway.coordinator.http_console import FOLDER as CONSOLE
from playwright.async_api import Browser, Locator, Page, Route, expect

pytestmark = pytest.mark.asyncio(loop_scope="session")

PLACES = {
    "Overview": "/",
    "Tasks": "/tasks",
    "Parked": "/parked",
    "Agents": "/agents",
    "Sagas": "/sagas",
    "Dead letters": "/dead",
}


def places(page: Page) -> Locator:
    return page.get_by_label("Pages", exact=True)


async def test_the_address_of_headway_console_signs_in_and_the_token_leaves_it(
    browser: Browser, site
) -> None:
    async with window(browser, site.url) as page:
        await page.goto(f"/#token={site.token}")
        await expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
        assert page.url == f"{site.url}/"
        await page.reload()
        await expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()


async def test_without_a_token_the_console_asks_for_one_and_says_where_it_is(
    browser: Browser, site
) -> None:
    async with window(browser, site.url) as page:
        await page.goto("/tasks")
        await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        await expect(page.get_by_text("headway console")).to_be_visible()
        await expect(page.get_by_label("Token")).to_be_focused()
        await page.get_by_label("Token").fill("hw_nobody")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("alert")).to_contain_text("this token is not good")
        await page.get_by_label("Token").fill(site.token)
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", name="Tasks", level=1)).to_be_visible()


async def test_signing_out_forgets_the_token(browser: Browser, site) -> None:
    async with window(browser, site.url) as page:
        await page.goto(f"/#token={site.token}")
        await page.get_by_role("button", name="Sign out").click()
        await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        assert await page.evaluate("sessionStorage.length") == 0


@pytest.mark.parametrize("place", PLACES)
async def test_each_place_has_an_address_a_title_and_the_focus(page: Page, place: str) -> None:
    await page.goto("/tasks" if place == "Overview" else "/")
    await places(page).get_by_role("link", name=place).click()
    await expect(page).to_have_url(re.compile(f"{PLACES[place]}$"))
    await expect(page).to_have_title(f"{place} · Headway")
    await expect(page.get_by_role("heading", name=place, level=1)).to_be_focused()
    current = places(page).locator("[aria-current=page]")
    await expect(current).to_contain_text(place)


async def test_back_returns_to_the_page_before(page: Page) -> None:
    await page.goto("/tasks")
    await places(page).get_by_role("link", name="Parked").click()
    await expect(page.get_by_role("heading", name="Parked", level=1)).to_be_visible()
    await page.go_back()
    await expect(page.get_by_role("heading", name="Tasks", level=1)).to_be_visible()


@pytest.mark.parametrize(("path", "status"), [("/tasks/a/b", 200), ("/nope", 404)])
async def test_an_address_that_no_page_has_says_so(page: Page, path: str, status: int) -> None:
    for _ in range(2):  # the second time the browser knows the page already
        answer = await page.goto(path)
        assert answer is not None
        assert answer.status == status
        await expect(page.get_by_role("heading", name="Not found")).to_be_visible()
        await expect(page.get_by_text(path, exact=True)).to_be_visible()


async def test_keys_go_from_page_to_page_and_are_listed_by_a_question_mark(page: Page) -> None:
    await page.goto("/")
    await page.keyboard.press("g")
    await page.keyboard.press("p")
    await expect(page.get_by_role("heading", name="Parked", level=1)).to_be_focused()
    await page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    await expect(dialog).to_contain_text("Next in the queue")
    await page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()


async def test_the_first_tab_stop_skips_to_the_content(page: Page) -> None:
    await page.goto("/tasks")
    await expect(page.get_by_role("heading", name="Tasks", level=1)).to_be_visible()
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("main")).to_be_focused()


async def test_colours_follow_the_system_until_somebody_chooses(browser: Browser, site) -> None:
    async with window(browser, site.url, token=site.token, theme="dark") as page:
        await page.goto("/parked")
        ground = "getComputedStyle(document.body).backgroundColor"
        dark = await page.evaluate(ground)
        await page.get_by_role("button", name="Colours: system").click()
        light = await page.evaluate(ground)
        assert dark != light
        await page.reload()
        await expect(page.get_by_role("button", name="Colours: light")).to_be_visible()
        assert await page.evaluate(ground) == light
        await page.get_by_role("button", name="Colours: light").click()
        assert await page.evaluate(ground) == dark


async def test_a_live_page_says_that_it_is(page: Page) -> None:
    await page.goto("/tasks")
    await expect(page.get_by_text("Live", exact=True)).to_be_visible()


async def test_a_page_that_gets_no_answer_says_so_and_goes_on_when_one_comes(page: Page) -> None:
    await page.route("**/api/**", lambda route: route.abort())
    await page.goto("/parked")
    problem = page.get_by_role("alert")
    await expect(problem).to_contain_text("No coordinator answers")
    await expect(problem).to_contain_text("headway up")
    await page.unroute("**/api/**")
    await expect(problem).to_be_hidden()
    await expect(page.get_by_label("What waits for a person")).to_be_visible()


@pytest.mark.parametrize(
    ("status", "words"),
    [(503, "The coordinator cannot answer now"), (429, "Too many requests")],
)
async def test_what_may_pass_is_asked_again(page: Page, status: int, words: str) -> None:
    async def refuse(route: Route) -> None:
        await route.fulfill(
            status=status,
            headers={"Retry-After": "1"},
            content_type="application/problem+json",
            body='{"type": "about:blank", "title": "busy", "detail": "come again"}',
        )

    await page.route("**/api/list?**", refuse)
    await page.goto("/tasks")
    await expect(page.get_by_role("alert")).to_contain_text(words)
    await page.unroute("**/api/list?**")
    await expect(page.get_by_role("region", name="Tasks")).to_be_visible()


async def test_a_role_that_is_too_small_is_told_so(browser: Browser, page: Page) -> None:
    async def refuse(route: Route) -> None:
        await route.fulfill(status=403, body='{"title": "no", "detail": "role view is too small"}')

    await page.route("**/api/parked?**", refuse)
    await page.goto("/parked")
    await expect(page.get_by_role("alert")).to_contain_text("This token may not see that")
    await expect(page.get_by_role("alert")).to_contain_text("role view is too small")


async def test_what_was_known_stays_when_answers_stop(page: Page) -> None:
    await page.goto("/tasks")
    await expect(page.get_by_text("Live", exact=True)).to_be_visible()
    await page.context.set_offline(True)
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    await expect(page.get_by_text("What you see is what was known before")).to_be_visible()
    await expect(page.get_by_text("Not current")).to_be_visible()
    await page.context.set_offline(False)
    await expect(page.get_by_text("Not current")).to_be_hidden()
    await expect(page.get_by_text("Live", exact=True)).to_be_visible()


async def test_on_a_narrow_screen_the_places_are_in_a_menu(browser: Browser, site) -> None:
    async with window(browser, site.url, token=site.token, width=360) as page:
        await page.goto("/tasks")
        link = places(page).get_by_role("link", name="Parked")
        await expect(link).to_be_hidden()
        await page.get_by_role("button", name="Menu").click()
        await link.click()
        await expect(page.get_by_role("heading", name="Parked", level=1)).to_be_visible()
        await expect(link).to_be_hidden()


async def test_the_browser_loads_every_module(page: Page) -> None:
    await page.goto("/tasks")
    modules = sorted(path.relative_to(CONSOLE).as_posix() for path in CONSOLE.rglob("*.js"))
    for module in modules:
        await page.evaluate(f"import('/console/{module}').then(() => null)")
    assert "main.js" in modules
