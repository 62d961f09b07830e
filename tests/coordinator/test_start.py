"""What a coordinator's process does not load: it is what most of a restart takes."""

from __future__ import annotations

import subprocess
import sys

NEEDLESS = ("prompt_toolkit", "pygments", "typer")


def test_a_coordinator_loads_no_command_line_of_its_libraries() -> None:
    told = "import sys, headway.coordinator.app; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-P", "-c", told], capture_output=True, text=True, check=True, timeout=60
    ).stdout.split()
    assert not [name for name in NEEDLESS if name in loaded]
    assert "cel.cel" in loaded
