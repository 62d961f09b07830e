"""Keeps this version: `PYTHONPATH=tests python tests/upgrades/record.py`.

Runs a coordinator and the office's agents, brings a task to each place of `stories`, stops
everything at once, and keeps the database; keeps a wheel as well, to be run beside later versions.
A version that is kept already is never kept again.
"""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
from harness.actors import Actors
from harness.coordination import client_of, registered, working
from harness.eventually import eventually
from harness.office import Office, sagas
from harness.services import nats_in, postgres_in
from headway.agents import Client, connect
from headway.agents.document_views import Transitions
from upgrades.keeping import keep
from upgrades.stories import STORIES, Story
from upgrades.till import teller, till

ROOT = Path(__file__).parents[2]
FIXTURES = Path(__file__).parent / "fixtures"


def main() -> None:
    file = FIXTURES / f"{version('headway')}.zip"
    if file.exists():
        raise SystemExit(f"{file.name} is kept already, and for ever; raise the version first")
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_record(Path(folder), file))
    build = (sys.executable, "-m", "build", "--wheel", "--outdir", str(FIXTURES), str(ROOT))
    subprocess.run(build, check=True, capture_output=True)
    shutil.rmtree(ROOT / "build")
    print(f"{file.name}: {file.stat().st_size} bytes, {len(STORIES)} stories")


async def _record(folder: Path, file: Path) -> None:
    nats, postgres = nats_in(folder / "nats"), postgres_in(folder / "postgres")
    actors = Actors(folder)
    await asyncio.gather(nats.start(), postgres.start())
    url = postgres.server.url_of(await postgres.create_database())
    try:
        urls = {"HEADWAY_NATS_URL": nats.url, "HEADWAY_POSTGRES_URL": url}
        await actors.start("coordinator_process", **urls)
        async with client_of(nats.url) as client, await connect(nats.url, name="office") as desks:
            office = Office(desks)
            for saga in (*sagas(), till()):
                await registered(client, saga)
            async with working(nats.url, *office.agents, teller, connection=desks, grace_s=0.0):
                tasks = await asyncio.gather(*(_rest(client, each) for each in STORIES.values()))
                await _documents(client)
                await actors.end()
        await _keep(url, dict(zip(STORIES, tasks, strict=True)), file)
    finally:
        await actors.end()
        await asyncio.gather(nats.kill(), postgres.stop())


async def _rest(client: Client, story: Story) -> UUID:
    """The story's task, where it rests."""
    receipt = await client.submit(story.saga, story.order, manifest=story.manifest)

    async def rests() -> bool:
        view = await client.status(receipt.task)
        return view.status == story.kept and story.rests(view)

    await eventually(rests, 20, what=f"a task of {story.saga} rests")
    return receipt.task


async def _documents(client: Client) -> None:
    stages = Transitions(field="status", initial=["new"], legal={"new": ["paid"]})
    await client.documents.collection("bills", transitions=stages)
    await client.documents.put("bills", "b-1", {"status": "new", "total": 5}, expected=0)
    await client.documents.put("bills", "b-1", {"status": "paid", "total": 5}, expected=1)


async def _keep(url: str, tasks: dict[str, UUID], file: Path) -> None:
    connection = await asyncpg.connect(url)
    try:
        about: dict[str, Any] = {
            "version": version("headway"),
            "written_at": datetime.now(UTC).isoformat(),
            "tasks": {
                story: {"id": str(task), **await _state(connection, task)}
                for story, task in tasks.items()
            },
        }
        await keep(connection, about, file)
    finally:
        await connection.close()


async def _state(connection: asyncpg.Connection, task: UUID) -> dict[str, Any]:
    row = await connection.fetchrow(
        "SELECT status, version, state::text FROM headway.tasks WHERE id = $1", task
    )
    digest = hashlib.sha256(row["state"].encode()).hexdigest()
    return {"status": row["status"], "version": row["version"], "digest": digest}


if __name__ == "__main__":
    main()
