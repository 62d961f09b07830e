"""Mistakes in a person's own module are told in its lines, not in those of the program."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from command_shell import Shell

SHOP = """\
import json
from headway.agents import Agent
from headway.sagas import Saga

me = Agent("me")

def buy() -> Saga:
    return parsed("{")

def parsed(text: str) -> Saga:
    return json.loads(text)

def sell() -> Saga:
    saga = Saga("sell", version=1)
    saga.step("go", "me.go", read_only=True)
    return saga
"""


@pytest.fixture
def written(elsewhere: Shell, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    """A folder with a module of one's own, of which nothing stays loaded."""
    (elsewhere.folder / "kiosk.py").write_text(SHOP)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield elsewhere
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.mark.parametrize("command", [("agent",), ("saga", "register")])
def test_a_syntax_error_is_told_with_its_line(written: Shell, command: tuple[str, ...]) -> None:
    file = written.folder / "slip.py"
    file.write_text("x = 1\ndef go(:\n    pass\n")
    ended = written.run_here(*command, "slip:me")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.splitlines() == [
        "headway: module 'slip' cannot be loaded: SyntaxError in slip.py, line 2: invalid syntax",
        f'  File "{file}", line 2',
        "    def go(:",
        "           ^",
        "SyntaxError: invalid syntax",
    ]


@pytest.mark.parametrize("command", [("agent",), ("saga", "register")])
def test_what_a_module_raises_is_told_with_its_own_frames(
    written: Shell, command: tuple[str, ...]
) -> None:
    file = written.folder / "worse.py"
    file.write_text("from headway.agents import Agent\n\nme = Agent('no such name')\n")
    ended = written.run_here(*command, "worse:me")
    said = ended.err.splitlines()
    assert (ended.code, ended.out) == (2, "")
    assert said[0].startswith(
        "headway: module 'worse' cannot be loaded: DeclarationError in worse.py, line 3: "
    )
    assert said[1:3] == [
        f'  File "{file}", line 3, in <module>',
        "    me = Agent('no such name')",
    ]
    assert said[3].startswith("headway.agents.errors.DeclarationError: ")
    assert len(said) == 4


def test_a_function_that_fails_to_make_its_saga_is_told_so(written: Shell) -> None:
    ended = written.run_here("saga", "register", "kiosk:buy")
    file = written.folder / "kiosk.py"
    why = "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"
    assert ended.code == 2
    assert ended.err.splitlines() == [
        f"headway: kiosk:buy cannot be made: JSONDecodeError in kiosk.py, line 11: {why}",
        f'  File "{file}", line 8, in buy',
        '    return parsed("{")',
        f'  File "{file}", line 11, in parsed',
        "    return json.loads(text)",
        f"json.decoder.JSONDecodeError: {why}",
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            "saga register kiosk:bye",
            "module 'kiosk' ({folder}/kiosk.py) has nothing named 'bye'; its sagas are: buy, sell",
        ),
        (
            "agent kiosk:bye",
            "module 'kiosk' ({folder}/kiosk.py) has nothing named 'bye'; its agents are: me",
        ),
        (
            "saga register kiosk",
            "'kiosk' is a module, and what is meant is in it: say kiosk:buy, kiosk:sell",
        ),
        ("agent kiosk", "'kiosk' is a module, and what is meant is in it: say kiosk:me"),
        (
            "saga register kiosk.py:buy",
            "'kiosk.py:buy' names a file, not a module: say kiosk:buy",
        ),
        (
            "saga register kiosk:sell nothing:buy",
            "there is no module 'nothing' to load 'nothing:buy' from; looked in {folder} and the "
            "installed packages; of these 2, none was registered",
        ),
    ],
)
def test_a_name_that_is_not_there_is_told_what_is(
    written: Shell, arguments: str, words: str
) -> None:
    ended = written.run_here(*arguments.split())
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == f"headway: {words.format(folder=written.folder)}\n"


def test_a_file_that_another_module_hides_is_named_with_what_hides_it(written: Shell) -> None:
    (written.folder / "pytest.py").write_text("from headway.agents import Agent\nme = Agent('me')")
    ended = written.run_here("agent", "pytest:me")
    assert ended.code == 2
    assert ended.err == (
        f"headway: module 'pytest' ({pytest.__file__}; it hides your pytest.py, which needs "
        "another name) has nothing named 'me'; it has no agents\n"
    )


def test_of_several_of_which_one_is_refused_it_is_told_which_are_registered(shell: Shell) -> None:
    ended = shell.run_here("saga", "register", "shop:waiting", "shop:changed", "shop:refund")
    assert (ended.code, ended.out) == (3, "")
    assert ended.err.endswith("; of these 3, waiting v1 was registered\n")
