"""What `headway doctor` says, asked while a fault lasts."""

from __future__ import annotations

from cluster.system import LoadedSystem
from headway.cli.addresses import Addresses
from headway.cli.checkup import examine_nats
from headway.cli.database import examine_postgres
from headway.cli.findings import Finding


async def examined(nats_url: str, postgres_url: str) -> list[Finding]:
    findings, made = await examine_nats(Addresses(nats_url, postgres_url, "a test"))
    return [*findings, *await examine_postgres(postgres_url, made)]


async def troubles(system: LoadedSystem) -> list[Finding]:
    """All that is not as it should be."""
    return [
        one for one in await examined(system.nats_url, system.postgres_url) if one.state != "ok"
    ]
