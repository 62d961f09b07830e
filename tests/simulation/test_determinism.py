"""What would make a simulated run differ from itself, found in the sources before it does."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PACKAGES = ("agents", "coordinator", "sagas")

# A clock that is somebody's default was looked up when the module was imported: it is the real one.
KEPT_CLOCK = re.compile(r"=\s*time\.(time|time_ns|monotonic|monotonic_ns|perf_counter)\b(?!\()")
IMPORTED_CLOCK = re.compile(r"^from (time|random|os|secrets) import", re.MULTILINE)


def sources() -> list[Path]:
    return [path for package in PACKAGES for path in sorted((ROOT / package).glob("*.py"))]


def test_clocks_are_looked_up_when_they_are_asked() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in sources()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if KEPT_CLOCK.search(line)
    ]
    assert wrong == []


def test_clocks_and_randomness_are_asked_by_their_modules() -> None:
    wrong = [path.name for path in sources() if IMPORTED_CLOCK.search(path.read_text())]
    assert wrong == []
