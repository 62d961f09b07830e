"""One live system and one browser for all tests of the console.

- `shell`: the folder of a running `headway up` with agent `shop` (see harness/corner_shop.py).
- `site`: where its console is, and the token that lets in.
- `api`: the HTTP API of it, as a program asks.
- `page`: a window of its own, 1440 px wide and light, signed in. `browser` and `site` make others:
  `async with window(browser, site.url, token=site.token, width=NARROW, theme="dark") as page`.

Modules say `pytestmark = pytest.mark.asyncio(loop_scope="session")`: a browser lives in one loop.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field

import pytest
import pytest_asyncio
from command_shell import Shell
from harness.asking import Asking, asking
from harness.browser import browsing, window
from harness.corner_shop import open_shop
from harness.findings import findings
from playwright.async_api import Browser, Page


@dataclass(frozen=True)
class Site:
    """The console of the live system."""

    url: str
    token: str
    shell: Shell
    tokens: dict[str, str] = field(default_factory=dict)

    def submit(self, saga: str, given: object, *options: str) -> str:
        """Hand in a task; answers its id."""
        submitted = self.shell.run("submit", saga, json.dumps(given), *options)
        assert submitted.code == 0, submitted.err
        return submitted.out.strip()

    def token_of(self, role: str) -> str:
        """A token of that role, whose name is the role's."""
        if role not in self.tokens:
            made = self.shell.run("tokens", "create", role, "--role", role, "--json")
            assert made.code == 0, made.err
            self.tokens[role] = made.json["token"]
        return self.tokens[role]


@pytest.fixture(scope="session")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    with open_shop(tmp_path_factory.mktemp("console")) as shell:
        yield shell


@pytest.fixture(scope="session")
def site(shell: Shell) -> Site:
    way_in = shell.run_here("console", "--json").json
    return Site(way_in["url"], way_in["token"], shell)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    async with browsing() as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="session")
async def page(browser: Browser, site: Site) -> AsyncIterator[Page]:
    async with window(browser, site.url, token=site.token) as page:
        yield page


@pytest_asyncio.fixture(loop_scope="session")
async def api(site: Site) -> AsyncIterator[Asking]:
    async with asking(site.url, site.token) as api:
        yield api


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for times in findings(terminalreporter, "console"):
        terminalreporter.write_line("the console with 100,000 tasks: " + ", ".join(times))
