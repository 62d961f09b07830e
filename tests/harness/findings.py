"""What tests found out and the summary of the run shows, whichever process they ran in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


def note(request: pytest.FixtureRequest, kind: str, finding: tuple[Any, ...]) -> None:
    """Have `finding`, of plain values, shown by whoever summarises findings of this kind."""
    request.node.user_properties.append((kind, finding))


def findings(reporter: pytest.TerminalReporter, kind: str) -> Iterator[tuple[Any, ...]]:
    """All findings of one kind, in the order in which their tests ended."""
    for reports in list(reporter.stats.values()):
        for report in reports:
            if getattr(report, "when", "") == "call":
                for name, finding in report.user_properties:
                    if name == kind:
                        yield tuple(finding)
