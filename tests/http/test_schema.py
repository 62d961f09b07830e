"""Schemathesis against the running service: what fits the OpenAPI document and what does not.

Of some 3,000 requests that it makes up, none is answered with an error of ours, with a status or a
type that the document does not have, or with a body that breaks its schema. What it found is kept
as JUnit's XML, in the test's folder.

Left out are the two checks of what is let in: that an id, a cursor or a definition exists and makes
sense is not in a schema, and numbers may come as texts here, as everywhere.
"""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import httpx
from harness.served import Served

SEED = 20_260_131
CASES_MAX = 3  # that are made up at random, of an operation; each field is broken in turn as well
CASES_MIN = 1_500  # in all
LEFT_OUT = "positive_data_acceptance,negative_data_rejection"
PROGRAM = str(Path(sys.executable).with_name("st"))


async def test_no_request_is_answered_otherwise_than_the_document_says(
    served: Served, operator: httpx.AsyncClient, tmp_path: Path
) -> None:
    served.coordinator._settled.close()  # nobody waits for the tasks that are made up
    report, said = tmp_path / "report.xml", tmp_path / "said"
    options = [
        *("--header", f"Authorization: Bearer {served.tokens['operate']}"),
        *("--exclude-path", "/api/feed"),  # which never ends
        *("--phases", "examples,coverage,fuzzing", "--exclude-checks", LEFT_OUT),
        *("--seed", str(SEED), "--max-examples", str(CASES_MAX), "--request-timeout", "15"),
        *("--no-color", "--report-junit-path", str(report)),
    ]
    with said.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *(PROGRAM, "run", f"{served.address}/api/openapi.json", *options),
            stdout=output,
            stderr=asyncio.subprocess.STDOUT,
            cwd=tmp_path,
        )
        async with asyncio.timeout(150):
            status = await process.wait()
    print(said.read_text()[-8_000:])
    assert status == 0, f"see above; seed {SEED}"
    suites = ElementTree.parse(report).getroot()
    assert (suites.get("failures"), suites.get("errors")) == ("0", "0")
    [made] = re.findall(r"(\d+) generated, \1 passed", said.read_text())
    assert int(made) > CASES_MIN
