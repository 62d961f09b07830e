"""Where the servers are: from flags, from the environment, or from a running `headway up`.

An address that was given wins, and then nothing is taken from a running `up`: the servers of
one command always belong together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

from headway.agents.errors import Unavailable
from headway.cli.failures import BadInput
from headway.coordinator.connections import FILE_NAME, Connections, running_connections

DEFAULT_DATA = Path(".headway")

NATS_URL = "HEADWAY_NATS_URL"
POSTGRES_URL = "HEADWAY_POSTGRES_URL"
DATA = "HEADWAY_DATA"


NATS_SCHEMES = ("nats", "tls", "ws", "wss")
POSTGRES_SCHEMES = ("postgresql", "postgres")

Who = Literal["people", "agents", "coordinators"]


@dataclass(frozen=True, slots=True)
class Addresses:
    """What was given or found. `origin` says where, for people."""

    nats_url: str
    postgres_url: str | None
    origin: str


@dataclass(frozen=True, slots=True)
class Given:
    """The flags of a command; None where one was not given."""

    nats_url: str | None = None
    data: Path | None = None
    postgres_url: str | None = None


def data_directory(given: Path | None, environ: Mapping[str, str]) -> Path:
    """The data directory of `headway up`: the flag's, the environment's, or ./.headway."""
    return given or Path(environ.get(DATA) or DEFAULT_DATA)


def find(given: Given, environ: Mapping[str, str], who: Who = "people") -> Addresses:
    """The addresses to use; Unavailable says how to give them if there are none. A running `up` has
    another user of NATS for each of `who`.

    BadInput when what was given is no URL.
    """
    postgres_url = given_postgres(given.postgres_url, environ)
    if given.nats_url:
        return Addresses(_url(given.nats_url, "--nats-url"), postgres_url, "--nats-url")
    if environ.get(NATS_URL):
        return Addresses(_url(environ[NATS_URL], NATS_URL), postgres_url, NATS_URL)
    return _of_running_up(data_directory(given.data, environ), who)


def without_secret(url: str) -> str:
    """Each of the comma-separated URLs without its user and password."""
    return ",".join(_without_secret(one) for one in url.split(","))


def given_postgres(flag: str | None, environ: Mapping[str, str]) -> str | None:
    """The URL of PostgreSQL that was given, if one was; BadInput when it is none."""
    url, origin = (flag, "--postgres-url") if flag else (environ.get(POSTGRES_URL), POSTGRES_URL)
    if url and url.partition("://")[0] not in POSTGRES_SCHEMES:
        form = "postgresql://user:password@host:port/database"
        raise BadInput(f"{origin} holds no URL of the form {form}")
    return url or None


def _url(url: str, origin: str) -> str:
    form = f"{origin} holds no URL of the form nats://host:port"
    for one in url.split(","):
        scheme, separator, _ = one.partition("://")
        if separator and scheme not in NATS_SCHEMES:
            raise BadInput(f"{form}: {scheme}:// is not spoken by NATS")
        try:
            parts = urlsplit(one if separator else f"nats://{one}")
            _ = parts.port
        except ValueError as error:
            raise BadInput(f"{form}: {error}") from None
        if not parts.hostname:
            raise BadInput(f"{form}: it names no host")
    return url


def _without_secret(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def running_up(data: Path) -> Connections | None:
    """How to reach the `headway up` that runs on `data`; None if none does. Unavailable if that
    cannot be told."""
    try:
        return running_connections(data)
    except PermissionError:
        raise Unavailable(
            f"the `headway up` in {data} is another user's: run as that user, "
            f"or set --nats-url or {NATS_URL}"
        ) from None
    except (ValueError, TypeError):
        raise Unavailable(
            f"{data / FILE_NAME} is damaged: stop `headway up` and start it again"
        ) from None


def _of_running_up(data: Path, who: Who) -> Addresses:
    running = running_up(data)
    if running is None:
        raise Unavailable(
            f"no `headway up` runs in {data.absolute()}, and no address was given: start one "
            f"there; or name where one keeps its data with --data or {DATA}, or a NATS server with "
            f"--nats-url or {NATS_URL}"
        )
    urls = {
        "people": running.nats_url,
        "agents": running.agents_nats_url,
        "coordinators": running.coordinators_nats_url,
    }
    return Addresses(urls[who], running.postgres_url, f"`headway up` in {data}")
