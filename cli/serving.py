"""Does the work of `headway coordinator`. Needs the extra `coordinator`."""

from __future__ import annotations

from headway.agents.messages import describe
from headway.cli.addresses import POSTGRES_URL
from headway.cli.failures import BadInput
from headway.cli.terminal import Terminal
from headway.coordinator import app
from headway.coordinator.settings import Settings
from pydantic import SecretStr, ValidationError


def coordinator(terminal: Terminal, postgres_url: str | None) -> None:
    """Run one coordinator until SIGINT or SIGTERM; outages of its servers do not end it."""
    addresses = terminal.addresses(postgres_url, "coordinators")
    if addresses.postgres_url is None:
        raise BadInput(f"no PostgreSQL address: set --postgres-url or {POSTGRES_URL}")
    app.run(_settings(addresses.nats_url, addresses.postgres_url))


def _settings(nats_url: str, postgres_url: str) -> Settings:
    try:
        return Settings(nats_url=SecretStr(nats_url), postgres_url=SecretStr(postgres_url))
    except ValidationError as error:
        raise BadInput(f"a HEADWAY_… variable does not fit: {describe(error)}") from None
