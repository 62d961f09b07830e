"""Takes pictures of the console while the order desk's demo runs: docs/images, and all the others.

    .venv/bin/python -P docs/screenshots.py [FOLDER]

Every page at both widths and in both themes goes to FOLDER, or to a fresh one, to be looked at;
those that the guides show go to docs/images as well. Needs /usr/bin/chromium.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from headway.agents.client import Client
from headway.agents.errors import HeadwayError
from headway.cli import output
from headway.coordinator.embedded import Embedded
from headway.demo.crew import crew
from headway.demo.desk import Desk
from headway.demo.downstream import ORDERS_FILE
from headway.demo.killer import carry_out, plan
from headway.demo.narration import Narration
from headway.demo.orders import Order, generate, write_orders
from headway.demo.stage import ANSWER_WITHIN_S, finder
from headway.demo.together import together
from playwright.async_api import Browser, Page, async_playwright

IMAGES = Path(__file__).parent / "images"
CHROMIUM = "/usr/bin/chromium"
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run")
WIDTHS = {"wide": 1440, "narrow": 360}  # px
THEMES = ("light", "dark")
HEIGHT, HIGHEST = 900, 1_500
SEED, ORDERS, KILLS = 7, 240, 10
SPAN_S = 75.0  # over more than a minute, so that the charts have a course
TRICKLE_S = 1.2  # between two orders that come while the pictures are taken
PATIENCE_MS = 30_000
SETTLED_MS = 1_500  # for what a page asks for to be drawn

SHOWN = {
    "overview-wide-light": "overview",
    "tasks-wide-light": "tasks",
    "task-wide-light": "task",
    "saga-wide-light": "saga",
    "agents-wide-dark": "agents",
    "parked-narrow-light": "parked-narrow",
    "dead-wide-light": "dead-letters",
}
"""Of all pictures, by name, those of docs/images."""


@dataclass(frozen=True, slots=True)
class Stage:
    """The running demo, as the pictures need it."""

    embedded: Embedded
    client: Client
    desk: Desk


async def main(folder: Path) -> None:
    with (
        tempfile.TemporaryDirectory() as data,
        Narration(output.narration_console(), "orders") as narration,
    ):
        async with AsyncExitStack() as stack:
            embedded = await stack.enter_async_context(Embedded(Path(data) / "servers"))
            client = await stack.enter_async_context(
                await Client.connect(embedded.nats_url, timeout=ANSWER_WITHIN_S)
            )
            stage = Stage(embedded, client, Desk(client, narration))
            orders = generate(2 * ORDERS, SEED)
            write_orders(Path(data) / ORDERS_FILE, orders)
            await stage.desk.open()
            agents = await stack.enter_async_context(
                crew(Path(data), SEED, embedded.agents_nats_url, client)
            )
            kills = plan(SEED, KILLS, SPAN_S)
            await refused(client)
            narration.begin(ORDERS)
            await together(
                [
                    carry_out(kills, finder(embedded, agents), narration.tell),
                    stage.desk.serve(orders[:ORDERS], SPAN_S),
                ]
            )
            trickle = asyncio.create_task(stage.desk.serve(orders[ORDERS:], ORDERS * TRICKLE_S))
            try:
                await pictures(stage, folder)
            finally:
                trickle.cancel()
                await asyncio.wait([trickle])
    for name, shown in SHOWN.items():
        (IMAGES / f"{shown}.png").write_bytes((folder / f"{name}.png").read_bytes())


async def refused(client: Client) -> None:
    """What comes to a shop that nobody can take: dead letters."""
    jetstream = client.connection.nc.jetstream()
    order = generate(1, SEED)[0]
    for subject, body in {
        "hw.tasks.fulfil-order": b'{"order": "O-9001", "customer": "ada", "quan',
        "hw.tasks.gift-wrap": order.model_dump_json().encode(),
        "hw.tasks.refund": Order.model_construct(order="O-9003").model_dump_json().encode(),
    }.items():
        await jetstream.publish(subject, body)


async def pages(client: Client) -> Mapping[str, str]:
    """Where each picture is taken, by name."""
    parked = (await client.parked()).waiting
    undone = (await client.list(status=["compensated"], saga="fulfil-order", limit=50)).tasks
    lines = {row.task: await client.timeline(row.task) for row in undone}
    busiest = max(lines, key=lambda task: sum(len(step.bars) for step in lines[task].steps))
    letter = (await client.dead_letters()).letters[-1].sequence
    return {
        "overview": "/",
        "tasks": "/tasks",
        "tasks-chosen": "/tasks?status=compensated&status=parked",
        "task": f"/tasks/{busiest}?step=charge",
        "task-parked": f"/tasks/{parked[0].task}" if parked else "/tasks",
        "parked": "/parked",
        "agents": "/agents",
        "sagas": "/sagas",
        "saga": "/sagas/fulfil-order",
        "dead": "/dead",
        "letter": f"/dead?letter={letter}",
        "lost": "/nowhere",
    }


async def pictures(stage: Stage, folder: Path) -> None:
    """Take them all."""
    places = await pages(stage.client)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        try:
            for width in WIDTHS:
                for theme in THEMES:
                    await round_of(browser, stage, places, folder, width, theme)
        finally:
            await browser.close()


async def round_of(
    browser: Browser, stage: Stage, places: Mapping[str, str], folder: Path, width: str, theme: str
) -> None:
    """Every page at one width and in one theme."""
    connections = stage.embedded.connections
    context = await browser.new_context(
        base_url=connections.http_url,
        viewport={"width": WIDTHS[width], "height": HEIGHT},
        color_scheme="dark" if theme == "dark" else "light",
    )
    context.set_default_timeout(PATIENCE_MS)
    page = await context.new_page()
    await page.goto("/nowhere")
    await page.evaluate(f"sessionStorage.setItem('headway.token', '{connections.console_token}')")
    for name, path in places.items():
        await page.goto(path)
        await shown(page)
        await stretched(page, WIDTHS[width])
        await page.screenshot(path=folder / f"{name}-{width}-{theme}.png")
        await page.set_viewport_size({"width": WIDTHS[width], "height": HEIGHT})
    await context.close()


async def stretched(page: Page, width: int) -> None:
    """Make the window as high as the page, within reason: what is fixed stays at its edges."""
    high = int(await page.evaluate("document.documentElement.scrollHeight"))
    await page.set_viewport_size({"width": width, "height": min(max(high, HEIGHT), HIGHEST)})


async def shown(page: Page) -> None:
    """Wait until what the page asked for is there."""
    await page.locator("main h1").wait_for()
    await page.locator(".skeleton, .row-loading").first.wait_for(state="detached")
    await page.wait_for_timeout(SETTLED_MS)


if __name__ == "__main__":
    into = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="headway-console-"))
    into.mkdir(parents=True, exist_ok=True)
    try:
        asyncio.run(main(into))
    except HeadwayError as error:
        sys.exit(f"screenshots: {error}")
    output.narrate(f"all pictures are in {into}; docs/images has those that are shown")
