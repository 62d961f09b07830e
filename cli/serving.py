"""Does the work of `headway coordinator`. Needs the extra `coordinator`."""

from __future__ import annotations

from headway.cli.addresses import POSTGRES_URL
from headway.cli.failures import BadInput
from headway.cli.terminal import Terminal
from headway.coordinator import app
from headway.coordinator.settings import Settings
from pydantic import SecretStr


def coordinator(terminal: Terminal, postgres_url: str | None) -> None:
    """Run one coordinator until SIGINT or SIGTERM; outages of its servers do not end it."""
    addresses = terminal.addresses(postgres_url)
    if addresses.postgres_url is None:
        raise BadInput(f"no PostgreSQL address: set --postgres-url or {POSTGRES_URL}")
    settings = Settings(
        nats_url=SecretStr(addresses.nats_url), postgres_url=SecretStr(addresses.postgres_url)
    )
    app.run(settings)
