"""Where stages stand: the servers that they need, on disks that can be filled if a fault asks."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from chaos.stage import Stage, staged
from harness.services import nats_in, postgres_in

DISK_BYTES = 768 * 1024 * 1024  # JetStream reserves 320 MiB for streams that have a limit
SMALL = {"max_wal_size": "64MB", "min_wal_size": "32MB"}  # so that PostgreSQL fits


class NoMount(Exception):
    """A small file system could not be mounted here."""


@asynccontextmanager
async def theatre(folder: Path, rng: random.Random, *, mounts: bool) -> AsyncIterator[Stage]:
    """A stage with servers of its own; with `mounts` each has a small disk of its own."""
    nats_at, postgres_at = folder / "nats-disk", folder / "postgres-disk"
    with _disk(nats_at, mounts), _disk(postgres_at, mounts):
        nats = nats_in(nats_at / "nats")
        postgres = postgres_in(postgres_at / "postgres", SMALL if mounts else None)
        try:
            await nats.start()
            await postgres.start()
            async with staged(nats, postgres, folder, rng) as stage:
                stage.disks = {"nats": nats_at, "postgres": postgres_at}
                yield stage
        finally:
            await nats.kill()
            await postgres.kill()


@contextmanager
def _disk(at: Path, mounted: bool) -> Iterator[None]:
    at.mkdir(parents=True)
    if not mounted:
        yield
        return
    try:
        _run("mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES},mode=0755", "tmpfs", str(at))
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", b"") or str(error).encode()
        raise NoMount(f"tmpfs cannot be mounted here: {said.decode().strip()}") from error
    try:
        yield
    finally:
        _run("umount", "--lazy", str(at))


def _run(program: str, *arguments: str) -> None:
    found = shutil.which(program)
    if found is None:
        raise OSError(f"there is no program {program!r}")
    subprocess.run([found, *arguments], check=True, capture_output=True)
