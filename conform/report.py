"""What the kit found about one agent. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel

Verdict = Literal["holds", "FAILS", "missing", "not tested"]


class Finding(BaseModel):
    """One check. `why` says what was seen instead, or what it takes to test it."""

    check: str
    level: Literal["MUST", "SHOULD"]
    says: str
    verdict: Verdict
    why: str = ""
    took_s: float = 0.0


class Report(BaseModel):
    """`ok`: nothing that the contract demands fails."""

    agent: str
    ok: bool
    findings: list[Finding]

    def count(self, verdict: Verdict) -> int:
        return sum(each.verdict == verdict for each in self.findings)


def report(agent: str, findings: Sequence[Finding]) -> Report:
    """FAILS is for what is demanded; what is only recommended is `missing`."""
    ok = all(each.verdict != "FAILS" for each in findings)
    return Report(agent=agent, ok=ok, findings=list(findings))
