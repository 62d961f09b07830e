"""The house rules, read from the sources. A rule that is not checked here is only a wish.

Each rule is a function from one module to its complaints, and each is shown to bite by a
module that breaks it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from harness.findings import note

ROOT = Path(__file__).parent.parent
PACKAGES = ("sagas", "agents", "coordinator", "drills", "conform", "cli", "demo")

MODULE_LINES_MAX = 400
FUNCTION_LINES_MAX = 50
CLASS_METHODS_MAX = 15
MAKE_TARGETS_MAX = 10

MAY_IMPORT = {
    "sagas": {"sagas"},
    "agents": {"agents"},
    "coordinator": {"sagas", "agents", "coordinator"},
    "drills": {"sagas", "agents", "coordinator", "drills"},
    "conform": {"sagas", "agents", "coordinator", "conform"},
    "cli": set(PACKAGES),
    "demo": set(PACKAGES),
}
IMPURE = {
    *("asyncio", "nats", "asyncpg", "os", "time", "random", "secrets", "socket", "threading"),
    *("subprocess", "selectors", "multiprocessing", "pathlib", "logging", "opentelemetry"),
}
IMPURE_CALLS = {"now", "utcnow", "today", "uuid1", "uuid4", "open", "input"}
MAY_IMPORT_NATS = {"connection", "link", "parser", "wire"}
MAY_PRINT = {("cli", "output"), ("demo", "output")}
EMPTY_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "misc", "base"}
SUBPACKAGES = {
    *("coordinator/console", "coordinator/sql", "coordinator/sql/migrations"),
    *("demo/languages", "demo/support"),
}


@dataclass(frozen=True)
class Module:
    """One source file of a package, or a piece of text that stands for one."""

    package: str
    name: str
    text: str

    @property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    def imports(self) -> Iterator[tuple[int, str]]:
        """The dotted names imported anywhere in the module, each with its line."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from ((node.lineno, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield node.lineno, node.module or ""
                if node.module == "headway":
                    yield from ((node.lineno, f"headway.{alias.name}") for alias in node.names)

    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node


Rule = Callable[[Module], Iterator[str]]


def modules_fit_on_a_few_screens(module: Module) -> Iterator[str]:
    lines = module.text.count("\n")
    if lines > MODULE_LINES_MAX:
        yield f"{lines} lines, more than {MODULE_LINES_MAX}"


def functions_fit_on_one_screen(module: Module) -> Iterator[str]:
    for function in module.functions():
        lines = (function.end_lineno or 0) - function.lineno + 1
        if lines > FUNCTION_LINES_MAX:
            yield f"{function.lineno}: {function.name} has {lines} lines"


def classes_do_one_thing(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ClassDef):
            methods = sum(isinstance(m, ast.FunctionDef | ast.AsyncFunctionDef) for m in node.body)
            if methods > CLASS_METHODS_MAX:
                yield f"{node.lineno}: {node.name} has {methods} methods"


def modules_say_what_they_are(module: Module) -> Iterator[str]:
    if module.text.strip() and ast.get_docstring(module.tree) is None:
        yield "has no docstring"


def modules_are_named_after_the_domain(module: Module) -> Iterator[str]:
    if module.name in EMPTY_NAMES:
        yield f"{module.name!r} says nothing about the domain"


def packages_import_downwards_only(module: Module) -> Iterator[str]:
    for line, name in module.imports():
        top, _, rest = name.partition(".")
        target = rest.partition(".")[0]
        if top == "headway" and target and target not in MAY_IMPORT[module.package]:
            yield f"{line}: {module.package} may not import {name}"


def our_folders_are_never_imported_bare(module: Module) -> Iterator[str]:
    for line, name in module.imports():
        if name.partition(".")[0] in PACKAGES:
            yield f"{line}: bare import of {name}; say headway.{name}"


def imports_stand_at_the_top(module: Module) -> Iterator[str]:
    for function in module.functions():
        for node in ast.walk(function):
            if isinstance(node, ast.Import | ast.ImportFrom):
                yield f"{node.lineno}: import inside {function.name}"


def types_are_not_imported_apart(module: Module) -> Iterator[str]:
    if "TYPE_CHECKING" in module.text:
        yield "TYPE_CHECKING hides an import cycle"


def the_machine_is_pure(module: Module) -> Iterator[str]:
    if module.package != "sagas":
        return
    for line, name in module.imports():
        if name.partition(".")[0] in IMPURE:
            yield f"{line}: the machine may not import {name}"
    for node in ast.walk(module.tree):
        if isinstance(node, ast.AsyncFunctionDef | ast.Await):
            yield f"{node.lineno}: the machine awaits nothing"
        if isinstance(node, ast.Call):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if called in IMPURE_CALLS:
                yield f"{node.lineno}: the machine may not call {called}()"


def agents_need_no_database(module: Module) -> Iterator[str]:
    if module.package == "agents":
        for line, name in module.imports():
            if name.partition(".")[0] == "asyncpg":
                yield f"{line}: the SDK works without {name}"


def few_modules_of_the_sdk_know_nats(module: Module) -> Iterator[str]:
    if module.package == "agents" and module.name not in MAY_IMPORT_NATS:
        for line, name in module.imports():
            if name.partition(".")[0] == "nats":
                yield f"{line}: only {', '.join(sorted(MAY_IMPORT_NATS))} import {name}"


def output_has_one_place(module: Module) -> Iterator[str]:
    if (module.package, module.name) in MAY_PRINT:
        return
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print":
            yield f"{node.lineno}: print()"


RULES: list[Rule] = [
    modules_fit_on_a_few_screens,
    functions_fit_on_one_screen,
    classes_do_one_thing,
    modules_say_what_they_are,
    modules_are_named_after_the_domain,
    packages_import_downwards_only,
    our_folders_are_never_imported_bare,
    imports_stand_at_the_top,
    types_are_not_imported_apart,
    the_machine_is_pure,
    agents_need_no_database,
    few_modules_of_the_sdk_know_nats,
    output_has_one_place,
]

BREAKS: list[tuple[Rule, Module]] = [
    (modules_fit_on_a_few_screens, Module("cli", "long", "\n" * 401)),
    (functions_fit_on_one_screen, Module("cli", "long", "def f():\n" + "    pass\n" * 50)),
    (classes_do_one_thing, Module("cli", "wide", "class A:\n" + "  def f(self): ...\n" * 16)),
    (modules_say_what_they_are, Module("cli", "silent", "x = 1\n")),
    (modules_are_named_after_the_domain, Module("cli", "utils", "")),
    (packages_import_downwards_only, Module("agents", "a", "import headway.coordinator.app")),
    (packages_import_downwards_only, Module("sagas", "a", "from headway import agents")),
    (packages_import_downwards_only, Module("coordinator", "a", "import headway.cli.main")),
    (our_folders_are_never_imported_bare, Module("cli", "a", "from agents import Agent")),
    (imports_stand_at_the_top, Module("cli", "a", "def f():\n    import json\n")),
    (types_are_not_imported_apart, Module("cli", "a", "if typing.TYPE_CHECKING: ...")),
    (the_machine_is_pure, Module("sagas", "a", "import time")),
    (the_machine_is_pure, Module("sagas", "a", "async def f(): ...")),
    (the_machine_is_pure, Module("sagas", "a", "at = datetime.now()")),
    (agents_need_no_database, Module("agents", "a", "import asyncpg")),
    (few_modules_of_the_sdk_know_nats, Module("agents", "agent", "import nats.errors")),
    (output_has_one_place, Module("coordinator", "a", "print('hello')")),
]


def _modules(package: str) -> list[Module]:
    paths = sorted((ROOT / package).rglob("*.py"))
    assert paths, f"{package} has no modules"
    return [Module(package, path.stem, path.read_text()) for path in paths]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("package", PACKAGES)
def test_the_sources_follow_the_rule(package: str, rule: Rule) -> None:
    complaints = [
        f"{module.package}/{module.name}.py: {complaint}"
        for module in _modules(package)
        for complaint in rule(module)
    ]
    assert complaints == []


@pytest.mark.parametrize(("rule", "module"), BREAKS, ids=lambda x: getattr(x, "__name__", ""))
def test_a_module_that_breaks_the_rule_is_caught(rule: Rule, module: Module) -> None:
    assert list(rule(module))


@pytest.mark.parametrize("folder", ["tests", "bench"])
def test_nothing_beside_the_packages_imports_our_folders_bare(folder: str) -> None:
    complaints = [
        f"{path}: {complaint}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for complaint in our_folders_are_never_imported_bare(Module("", "", path.read_text()))
    ]
    assert complaints == []


def test_packages_are_flat_and_tests_are_no_packages() -> None:
    folders = {
        str(path.parent.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
    }
    assert folders == {*PACKAGES, *SUBPACKAGES}
    assert list((ROOT / "tests").rglob("__init__.py")) == []


def test_the_makefile_has_at_most_ten_targets() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^([a-z]+):.*##", makefile, re.MULTILINE)
    [phony] = re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert sorted(targets) == sorted(phony.split())
    assert len(targets) <= MAKE_TARGETS_MAX


def test_the_size_of_each_package_is_reported(request: pytest.FixtureRequest) -> None:
    sizes = {
        folder: sum(path.read_text().count("\n") for path in (ROOT / folder).rglob("*.py"))
        for folder in (*PACKAGES, "tests", "bench")
    }
    note(request, "sizes", tuple(f"{folder} {lines}" for folder, lines in sizes.items()))
    assert all(sizes[package] for package in PACKAGES)
