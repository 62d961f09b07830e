"""A real browser, driven by Playwright, looking at the console of a live system.

Always holds: a page that a test looked at wrote no error to its console, unless the test says that
it may; so a module that fails to load, or a policy that is broken, fails the test.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal

from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, Page, async_playwright

CHROMIUM = "/usr/bin/chromium"
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WIDE, NARROW = 1440, 360  # px
HEIGHT = 900
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
PATIENCE_MS = 10_000
UNHARMED = "Failed to load resource"  # what Chromium writes of each answer that is not good


@dataclass
class Complaints:
    """What pages wrote to their consoles as errors; `refusals` are answers that were not good."""

    errors: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)

    def watch(self, page: Page) -> None:
        page.on("console", lambda said: self._said(said.type, said.text))
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def _said(self, kind: str, text: str) -> None:
        if kind == "error":
            (self.refusals if text.startswith(UNHARMED) else self.errors).append(text)


@asynccontextmanager
async def browsing() -> AsyncIterator[Browser]:
    """A browser, while the block lasts."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def window(
    browser: Browser, base: str, *, width: int = WIDE, theme: str = "light", token: str = ""
) -> AsyncIterator[Page]:
    """A page with nothing of any other test in it; signed in, if there is a token."""
    context = await browser.new_context(
        base_url=base,
        viewport={"width": width, "height": HEIGHT},
        color_scheme="dark" if theme == "dark" else "light",
    )
    context.set_default_timeout(PATIENCE_MS)
    complaints = Complaints()
    page = await context.new_page()
    try:
        complaints.watch(page)
        if token:
            await page.add_init_script(f"sessionStorage.setItem('headway.token', '{token}')")
        yield page
    finally:
        # What still answers for the server would fail, or hold up the close.
        await page.unroute_all(behavior="ignoreErrors")
        await context.close()
    assert complaints.errors == []


async def violations(page: Page) -> list[str]:
    """What axe-core finds wrong with the page, one line each."""
    found = await Axe().run(page)
    return [
        f"{each['id']}: {each['help']}: {node['html'][:200]}"
        for each in found.response["violations"]
        for node in each["nodes"]
    ]


async def overflow_px(page: Page) -> int:
    """How much wider the page is than the window; 0 if it fits."""
    wider: int = await page.evaluate(
        "Math.max(0, document.documentElement.scrollWidth - document.documentElement.clientWidth)"
    )
    return wider


async def flaws(page: Page) -> list[str]:
    """What is wrong with the page as it is now, at both widths and in both themes."""
    found = []
    for width in (WIDE, NARROW):
        await page.set_viewport_size({"width": width, "height": HEIGHT})
        for theme in THEMES:
            await page.emulate_media(color_scheme=theme)
            found += [f"{width} px, {theme}: {each}" for each in await violations(page)]
        if wider := await overflow_px(page):
            found.append(f"{width} px: {wider} px wider than the window")
    return found
