"""The house rules of the console's files, read from the sources; each is shown to bite."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

CONSOLE = Path(__file__).parent.parent / "coordinator" / "console"
MODULE_LINES_MAX = 300
LINE_CHARS_MAX = 160
IMPORTED = re.compile(
    r'^import\b[^;"]*"([^"]+)";|^export [^;"]* from "([^"]+)";|import\("([^"]+)"\)', re.M
)
PARSE = """
const { SourceTextModule } = require("vm");
for (const file of process.argv.slice(1)) {
  new SourceTextModule(require("fs").readFileSync(file, "utf8"), { identifier: file });
}
"""
NAMESPACES = ("http://www.w3.org/",)  # names, which nothing fetches


@dataclass(frozen=True)
class Source:
    """One file of the console, or a piece of text that stands for one."""

    name: str
    text: str
    folder: Path = CONSOLE

    def lines(self) -> Iterator[tuple[int, str]]:
        yield from enumerate(self.text.splitlines(), 1)


Rule = Callable[[Source], Iterator[str]]


def sources_fit_on_a_few_screens(source: Source) -> Iterator[str]:
    lines = source.text.count("\n")
    if lines > MODULE_LINES_MAX:
        yield f"{lines} lines, more than {MODULE_LINES_MAX}"
    for number, line in source.lines():
        if len(line) > LINE_CHARS_MAX:
            yield f"{number}: {len(line)} characters, more than {LINE_CHARS_MAX}"


def modules_say_what_they_are(source: Source) -> Iterator[str]:
    if source.name.endswith(".js") and not source.text.startswith("// "):
        yield "does not begin with a comment"


def text_never_becomes_markup(source: Source) -> Iterator[str]:
    """Nor code: what a task holds is other people's."""
    for number, line in source.lines():
        if re.search(
            r"(inner|outer)HTML\s*\+?=[^=]|insertAdjacentHTML|document\.write|DOMParser", line
        ):
            yield f"{number}: makes markup of text"
        if re.search(r"\beval\(|new Function|setTimeout\(\s*[\"'`]", line):
            yield f"{number}: makes code of text"


def nothing_is_fetched_from_elsewhere(source: Source) -> Iterator[str]:
    for number, line in source.lines():
        if line.lstrip().startswith("// "):
            continue
        for address in re.findall(r"https?://[^\s\"'`)]*|(?<=[\"'(])//[a-z]+\.[^\s\"']*", line):
            if not address.startswith(NAMESPACES):
                yield f"{number}: {address}"


def the_policy_needs_no_exception(source: Source) -> Iterator[str]:
    """`default-src 'self'`: no script, style or handler stands in markup."""
    if source.name.endswith(".html"):
        for number, line in source.lines():
            if re.search(r"\son[a-z]+=|\sstyle=|<style|<script(?![^>]*\ssrc=)", line):
                yield f"{number}: something inline"


def imports_are_of_files_that_are_there(source: Source) -> Iterator[str]:
    if source.name.endswith(".js"):
        for found in IMPORTED.finditer(source.text):
            path = found[1] or found[2] or found[3]
            if not path.startswith(".") or not (source.folder / path).is_file():
                yield f"imports {path}"


RULES: list[Rule] = [
    sources_fit_on_a_few_screens,
    modules_say_what_they_are,
    text_never_becomes_markup,
    nothing_is_fetched_from_elsewhere,
    the_policy_needs_no_exception,
    imports_are_of_files_that_are_there,
]

BREAKS: list[tuple[Rule, Source]] = [
    (sources_fit_on_a_few_screens, Source("long.js", "\n" * 301)),
    (sources_fit_on_a_few_screens, Source("wide.css", "x" * 161)),
    (modules_say_what_they_are, Source("silent.js", "export const one = 1;\n")),
    (text_never_becomes_markup, Source("a.js", "view.innerHTML = reason;")),
    (text_never_becomes_markup, Source("a.js", "eval(reason)")),
    (text_never_becomes_markup, Source("a.js", "setTimeout('go()', 1)")),
    (nothing_is_fetched_from_elsewhere, Source("a.js", 'import "https://cdn.example/x.js";')),
    (nothing_is_fetched_from_elsewhere, Source("a.css", "url(//fonts.example/x.woff2)")),
    (the_policy_needs_no_exception, Source("a.html", '<p onclick="go()">')),
    (the_policy_needs_no_exception, Source("a.html", "<script>go()</script>")),
    (imports_are_of_files_that_are_there, Source("a.js", 'import { h } from "./nowhere.js";')),
    (imports_are_of_files_that_are_there, Source("a.js", 'import { h } from "lit";')),
]


def _sources() -> list[Source]:
    found = [
        Source(str(path.relative_to(CONSOLE)), path.read_text(), path.parent)
        for kind in ("js", "css", "html", "svg")
        for path in sorted(CONSOLE.rglob(f"*.{kind}"))
    ]
    assert found
    return found


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_console_follows_the_rule(rule: Rule) -> None:
    assert [f"{each.name}: {said}" for each in _sources() for said in rule(each)] == []


@pytest.mark.parametrize(("rule", "source"), BREAKS, ids=lambda x: getattr(x, "__name__", ""))
def test_a_file_that_breaks_the_rule_is_caught(rule: Rule, source: Source) -> None:
    assert list(rule(source))


def test_every_style_sheet_is_on_the_page() -> None:
    page = (CONSOLE / "index.html").read_text()
    sheets = {f"/console/{path.name}" for path in CONSOLE.glob("*.css")}
    assert set(re.findall(r'rel="stylesheet" href="([^"]+)"', page)) == sheets


def test_every_module_can_be_parsed() -> None:
    """By Node.js; where there is none, the browser that loads them all says it (tests/console)."""
    node = shutil.which("node")
    if node is None:
        return
    modules = [str(path) for path in sorted(CONSOLE.rglob("*.js"))]
    checked = subprocess.run(
        [node, "--experimental-vm-modules", "-e", PARSE, *modules],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr
