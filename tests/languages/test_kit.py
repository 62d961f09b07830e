"""The kit finds what it is there to find: an agent with a fault does not conform."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from headway.agents.errors import InvalidInput, Unavailable
from headway.conform import run as kit
from headway.conform.report import Finding, Report, report
from headway.conform.run import CHECKS, run
from languages.faulty import FAULTS

FAULTY = Path(__file__).parent / "faulty.py"
AT_ONCE = 7


async def _found(fault: str, check: str, folder: Path) -> Finding:
    """What the kit says about one check of an agent with this fault."""
    command = [sys.executable, "-P", str(FAULTY), fault]
    found = await run("hotels", folder, command, lambda _text: None, only=[check])
    return found.findings[0]


async def test_each_fault_is_found_by_the_check_that_is_for_it(tmp_path: Path) -> None:
    gate = asyncio.Semaphore(AT_ONCE)

    async def look(fault: str, check: str) -> tuple[str, Finding]:
        async with gate:
            return fault, await _found(fault, check, tmp_path / fault)

    for fault in FAULTS:
        (tmp_path / fault).mkdir()
    found = await asyncio.gather(*(look(name, check) for name, (_, check) in FAULTS.items()))
    missed = [
        f"{fault}: {finding}"
        for fault, finding in found
        if finding.verdict not in ("FAILS", "missing")
    ]
    assert missed == []
    assert len(found) == 22


async def test_an_agent_that_ends_at_once_is_told_with_its_last_words(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "raise SystemExit('no such agent here')"]
    with pytest.raises(Unavailable) as refused:
        await run("hotels", tmp_path, command, lambda _text: None)
    assert str(refused.value) == (
        "the agent ended before it asked for its key:\nno such agent here"
    )


async def test_an_agent_that_does_not_come_is_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kit, "COMES_WITHIN_S", 0.3)
    said: list[str] = []
    with pytest.raises(Unavailable) as refused:
        await run("hotels", tmp_path, (), said.append)
    assert str(refused.value) == (
        "agent 'hotels' did not ask for its key within 0.3 s: is that its name, does it connect to "
        "HEADWAY_NATS_URL, and are its credentials those in HEADWAY_CREDS?"
    )
    assert said[0].startswith("waiting for agent hotels; start it with: HEADWAY_NATS_URL=nats://")
    assert f"HEADWAY_CREDS={tmp_path}/hotels.creds" in said[0]
    assert said[0].endswith(": one that is connected elsewhere is not looked for.")


async def test_an_agent_without_the_conformance_actions_is_told_which_and_where_they_stand(
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-P", "-m", "headway.cli.main", "agent", "headway.demo.agents:mail"]
    with pytest.raises(InvalidInput) as refused:
        await run("mail", tmp_path, command, lambda _text: None)
    assert str(refused.value) == (
        "agent 'mail' has no action conform-echo, conform-double, conform-end, conform-large, "
        "conform-work, conform-undo: the kit asks for conformance actions, which an agent has for "
        "its tests alone; section 9 of agents/asyncapi.yaml says what they do"
    )


def test_checks_have_names_of_their_own() -> None:
    assert len({check.name for check in CHECKS}) == len(CHECKS)
    assert {check.level for check in CHECKS} == {"MUST", "SHOULD"}


def test_what_is_only_recommended_does_not_keep_an_agent_from_conforming() -> None:
    def finding(verdict: str) -> Finding:
        return Finding(check="x", level="SHOULD", says="y", verdict=verdict)

    assert report("a", [finding("holds"), finding("missing"), finding("not tested")]).ok
    assert not report("a", [finding("holds"), finding("FAILS")]).ok
    assert Report.model_validate_json(report("a", [finding("FAILS")]).model_dump_json()).findings
