"""The support desk on real servers: its processes are killed, and it makes no difference.

A few places of each journal, with a short wait for commands that were given to the dead; the whole
sweep is `python -m headway.demo.support.sweep`.
"""

from __future__ import annotations

import asyncio
import io
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from harness.coordination import client_of, coordinators
from harness.eventually import eventually
from headway.agents import Client
from headway.coordinator import streams
from headway.demo.narration import Narration
from headway.demo.support import run as support_run
from headway.demo.support.audit import Case, audit
from headway.demo.support.deaths import Place, places
from headway.demo.support.desk import Desk, Harm, desk
from headway.demo.support.report import Report
from headway.demo.support.run import Plan, evidence_in, run_support, with_a_person
from headway.demo.support.sagas import RESEARCH, SUPPORT
from rich.console import Console

ACK_WAIT_S = 0.9

HARMS = [
    Harm(SUPPORT, Place("result model-1", "before"), "agent"),  # it is billed, and not yet known
    Harm(SUPPORT, Place("intent turn-3-1", "after"), "agent"),  # before a person was asked
    Harm(SUPPORT, Place("result turn-3-1", "before"), "agent"),  # it is paid, and not yet known
    Harm(SUPPORT, Place("result turn-4-1", "before"), "agent"),  # the mail is out
    Harm(SUPPORT, Place("result model-5", "after"), "agent"),  # all is done, and not yet told
    Harm(RESEARCH, Place("result purchase#1", "before"), "agent"),
]


@asynccontextmanager
async def working(
    nats_url: str, postgres_url: str, folder: Path, *, lanes: int, interactive: bool = False
) -> AsyncIterator[tuple[Desk, Client]]:
    async with coordinators(nats_url, postgres_url), client_of(nats_url) as client:
        nobody = folder / "nobody.pid"
        async with desk(
            folder,
            nats_url,
            client,
            lanes=lanes,
            coordinator=nobody,
            interactive=interactive,
            ack_wait_s=ACK_WAIT_S,
        ) as opened:
            yield opened, client


@pytest.fixture(autouse=True)
def short_ack_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "ACK_WAIT_S", ACK_WAIT_S)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


async def test_agents_that_are_killed_pay_once_write_once_and_are_billed_once(
    nats_url: str, postgres_url: str, tmp_path: Path
) -> None:
    async with working(nats_url, postgres_url, tmp_path, lanes=3) as (opened, _):
        unharmed = [await opened.unharmed(kind) for kind in (SUPPORT, RESEARCH)]
        runs = [run for run, _ in unharmed]
        there = {run.kind: set(places(notes)) for run, notes in unharmed}
        assert all(harm.place in there[harm.kind] for harm in HARMS)
        runs += await opened.harmed(HARMS, lambda _run: None)
    evidence = evidence_in(tmp_path)
    assert audit(Case(runs, evidence)) == []
    effects = Counter(effect.service for effect in evidence.effects)
    assert effects == {"payments": 6, "mail": 6, "purchases": 2}
    repeated = [call.service for call in evidence.calls if call.outcome == "repeated"]
    assert {"v1/chat/completions", "payments", "mail", "purchases"} <= set(repeated)
    assert {harm.place for harm in HARMS} == {
        Place(run.entry, run.when) for run in runs if run.victim
    }


async def test_a_person_at_the_terminal_is_told_whose_refund_waits_and_may_say_no(
    nats_url: str, postgres_url: str, tmp_path: Path
) -> None:
    alone = working(nats_url, postgres_url, tmp_path, lanes=1, interactive=True)
    said = io.StringIO()
    narration = Narration(Console(file=said, width=400, highlight=False))
    async with alone as (opened, client):
        asking = asyncio.create_task(with_a_person(opened, Plan(lanes=1), narration))
        await eventually(lambda: " parked" in said.getvalue(), 15)
        [waiting] = (await client.parked()).waiting
        assert (waiting.kind, waiting.tool) == ("gate", "large_refund")
        await client.reject(waiting.task, invocation=waiting.invocation, by="eva", reason="no")
        [run], _ = await asking
    assert 'large_refund {"amount_cents":18900,"order":"L-0001"} waits' in said.getvalue()
    [result] = run.view.results.values()
    assert result["text"].endswith("We are sorry. A person will look into it and write to you.")
    effects = Counter(effect.service for effect in evidence_in(tmp_path).effects)
    assert effects == {"mail": 1}
    assert run.view.status == "succeeded"


def test_a_directory_with_something_in_it_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "letter").write_text("dear diary")
    command = [sys.executable, "-P", "-m", "headway.cli.main", "demo", "support", "--keep"]
    ran = subprocess.run(
        [*command, str(tmp_path)], capture_output=True, timeout=30, check=False, text=True
    )
    assert ran.returncode == 2
    assert ran.stderr == f"headway: {tmp_path} is not empty; name a new directory\n"


@pytest.mark.parametrize("holds", [True, False])
def test_the_exit_status_is_0_only_if_the_audit_holds(
    holds: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = dict.fromkeys(Report.model_fields, 0)
    lists = {"tasks": [], "findings": [], "places": {}, "harmed": {}, "unharmed_s": {}}
    report = Report.model_validate({**figures, **lists, "holds": holds})

    async def ran(*_arguments: object) -> Report:
        return report

    monkeypatch.setattr(support_run, "_run", ran)
    status = run_support(lanes=1, interactive=False, as_json=True, keep=None)
    assert status == (0 if holds else 1)
    assert Report.model_validate_json(capsys.readouterr().out) == report
