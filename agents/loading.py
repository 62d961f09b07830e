"""Finding what `MODULE:NAME` stands for in a person's own Python code, as seen from the current
directory; and saying what is wrong with that code in its own lines, not in ours."""

from __future__ import annotations

import importlib
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from headway.agents.errors import DeclarationError

FRAMES_SHOWN_MAX = 4  # of a traceback: the last ones

_LIBRARIES = tuple(
    f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "purelib", "platlib")
)


class NoModule(DeclarationError):
    """There is no module of that name."""


class NotLoaded(DeclarationError):
    """A person's own code raised; `lines` are its traceback, from their code alone."""

    def __init__(self, text: str, lines: Sequence[str] = ()) -> None:
        super().__init__(text)
        self.lines = tuple(lines)


def split(target: str, otherwise: str, there: Callable[[ModuleType], list[str]]) -> tuple[str, str]:
    """Module and name of `MODULE:NAME`; DeclarationError if it is not of that form: with what
    is `there` if it is a module, else it says `otherwise`."""
    module, colon, name = target.partition(":")
    if not (module and colon and name):
        held = _held(module, there) if module else []
        if held:
            said = ", ".join(f"{module}:{one}" for one in held)
            raise DeclarationError(
                f"{target!r} is a module, and what is meant is in it: say {said}"
            )
        raise DeclarationError(f"{target!r} is {otherwise}")
    if module.endswith(".py"):
        dotted = ".".join(Path(module).with_suffix("").parts).lstrip("./")
        raise DeclarationError(f"{target!r} names a file, not a module: say {dotted}:{name}")
    return module, name


def module_of(name: str, target: str) -> ModuleType:
    """The module of `target`, which is looked for in the current directory first.

    NoModule if there is none; NotLoaded if it raises while it is loaded, with where.
    """
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    with told_of(f"module {name!r} cannot be loaded"):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise  # the module is there, and misses one of its own imports
            raise NoModule(
                f"there is no module {error.name!r} to load {target!r} from; "
                f"looked in {os.getcwd()} and the installed packages"
            ) from error


def _held(module: str, there: Callable[[ModuleType], list[str]]) -> list[str]:
    try:
        return there(module_of(module, module))
    except NoModule:
        return []


@contextmanager
def told_of(what: str) -> Iterator[None]:
    """What a person's own code raises within becomes NotLoaded: `what`, the error, and where."""
    try:
        yield
    except NoModule:
        raise
    except (Exception, SystemExit) as error:
        raise NotLoaded(f"{what}: {_headline(error)}", _lines(error)) from error


def lacks(module: ModuleType, name: str, what: str, there: str) -> str:
    """That `module` has not what `name` should be, and which file it is; `there` is what it has."""
    return f"module {module.__name__!r}{_file(module)} has {what} named {name!r}; {there}"


def _file(module: ModuleType) -> str:
    """Which file was loaded; and the one that was meant, if the module hides it."""
    loaded = getattr(module, "__file__", None)
    if loaded is None:
        return ""
    meant = Path.cwd() / f"{module.__name__.replace('.', os.sep)}.py"
    if meant.is_file() and not meant.samefile(loaded):
        return f" ({loaded}; it hides your {meant.name}, which needs another name)"
    return f" ({loaded})"


def _headline(error: BaseException) -> str:
    """What was raised, and in which line of which file."""
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return type(error).__name__ + _place(error) + (f": {text}" if text else "")


def _place(error: BaseException) -> str:
    if isinstance(error, SyntaxError) and error.filename:
        return f" in {_near(error.filename)}, line {error.lineno}"
    frames = _own(error)
    return f" in {_near(frames[-1].filename)}, line {frames[-1].lineno}" if frames else ""


def _near(file: str) -> str:
    """A file's name as seen from the current directory, if it is within."""
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file


def _lines(error: BaseException) -> list[str]:
    shown = [*traceback.format_list(_own(error)[-FRAMES_SHOWN_MAX:])]
    shown += traceback.format_exception_only(error)
    return [line for part in shown for line in part.splitlines()]


def _own(error: BaseException) -> list[traceback.FrameSummary]:
    """The frames that are neither ours nor a library's."""
    walked = traceback.walk_tb(error.__traceback__)
    return list(
        traceback.StackSummary.extract(
            (frame, line)
            for frame, line in walked
            if not frame.f_code.co_filename.startswith(("<", *_LIBRARIES))
            and not str(frame.f_globals.get("__name__")).startswith("headway.")
        )
    )
