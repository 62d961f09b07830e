"""The three agents of the travel demo, each in another language or library, against the kit."""

from __future__ import annotations

import ast
import asyncio
import sys
from pathlib import Path

import headway.demo.languages.hotels
import pytest
from harness.findings import note
from headway.conform.report import Report
from headway.conform.run import CHECKS
from headway.demo.languages.crew import LANGUAGES, commands

HEADWAY = (sys.executable, "-P", "-m", "headway.cli.main")
FOLDER = Path(headway.demo.languages.hotels.__file__).parent
WITHIN_S = 120.0


async def _report(agent: str, command: tuple[str, ...]) -> tuple[int, Report]:
    process = await asyncio.create_subprocess_exec(
        *(*HEADWAY, "conform", agent, "--json", "--", *command), stdout=asyncio.subprocess.PIPE
    )
    written, _ = await asyncio.wait_for(process.communicate(), WITHIN_S)
    assert process.returncode is not None
    return process.returncode, Report.model_validate_json(written)


async def test_all_three_agents_conform(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    starts = commands(tmp_path)
    found = await asyncio.gather(*(_report(*each) for each in starts.items()))
    note(request, "conformance", ("check", "level", *starts))
    for lines in zip(*(report.findings for _, report in found), strict=True):
        verdicts = (finding.verdict for finding in lines)
        note(request, "conformance", (lines[0].check, lines[0].level, *verdicts))
    failing = [
        f"{report.agent}: {finding.check}: {finding.why}"
        for _, report in found
        for finding in report.findings
        if finding.verdict != "holds"
    ]
    assert failing == []
    assert [status for status, _ in found] == [0, 0, 0]
    assert starts.keys() == LANGUAGES.keys()
    assert {len(report.findings) for _, report in found} == {len(CHECKS) + 1}


def test_the_bare_agent_imports_nothing_of_ours() -> None:
    bare = ("bare", "bare_attempt", "bare_wire", "bare_words", "hotels")
    for name in bare:
        tree = ast.parse((FOLDER / f"{name}.py").read_text())
        imported = [
            node.module or ""
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("headway")
        ]
        own = {f"headway.demo.languages.{each}" for each in bare}
        assert set(imported) <= own, name


async def test_an_agent_that_does_not_conform_is_told_by_the_exit_status(tmp_path: Path) -> None:
    faulty = (sys.executable, "-P", str(Path(__file__).parent / "faulty.py"))
    process = await asyncio.create_subprocess_exec(
        *(*HEADWAY, "conform", "hotels", "--only", "operation", "--only", "action"),
        *("--keep", str(tmp_path / "kept"), "--", *faulty, "has-another-operation-id"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    written, _ = await asyncio.wait_for(process.communicate(), WITHIN_S)
    text = written.decode()
    assert process.returncode == 1, text
    assert "agent hotels does not conform: 2 holds, 1 FAILS" in text
    assert "the operation id is '" in text
    assert (tmp_path / "kept" / "agent.log").exists()


async def test_what_cannot_be_tested_is_refused() -> None:
    for arguments, words in (
        (("no such",), "'no such' cannot name an agent: use 1 to 64 of A-Z a-z 0-9 _ and -"),
        (
            ("hotels", "--only", "actoin"),
            "there is no check 'actoin'; `headway conform hotels --list` shows all",
        ),
    ):
        process = await asyncio.create_subprocess_exec(
            *(*HEADWAY, "conform", *arguments), stderr=asyncio.subprocess.PIPE
        )
        _, told = await asyncio.wait_for(process.communicate(), WITHIN_S)
        assert (process.returncode, told.decode()) == (2, f"headway: {words}\n")


async def test_the_checks_are_listed() -> None:
    process = await asyncio.create_subprocess_exec(
        *(*HEADWAY, "conform", "any", "--list"), stdout=asyncio.subprocess.PIPE
    )
    written, _ = await asyncio.wait_for(process.communicate(), WITHIN_S)
    lines = written.decode().splitlines()
    assert [line.split()[0] for line in lines[1:]] == [check.name for check in CHECKS]
