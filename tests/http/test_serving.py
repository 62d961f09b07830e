"""How HTTP is served: from the start to the end of a coordinator, by one or by several, on TLS."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from harness.coordination import coordinators
from harness.eventually import eventually
from harness.served import CONSOLE_TOKEN
from harness.services import RunningNats, RunningPostgres
from headway.coordinator.app import Coordinator
from headway.coordinator.datadir import DataDirectory
from headway.coordinator.http_socket import CannotListen, listen, listen_near, url_of
from headway.coordinator.settings import Settings
from security.certificates import Authority

SHOWN = {"Authorization": f"Bearer {CONSOLE_TOKEN}"}
FACE = {"http": "127.0.0.1:0", "console_token": CONSOLE_TOKEN}


async def ready(client: httpx.AsyncClient, missing: list[str] | None = None) -> bool:
    answer = await client.get("/readyz")
    told = answer.json()
    assert answer.status_code == (200 if told["ready"] else 503)
    return bool(told["missing"] == (missing or []))


@asynccontextmanager
async def serving(
    nats_url: str, postgres_url: str, **options: object
) -> AsyncIterator[httpx.AsyncClient]:
    """Whoever asks a coordinator; it is stopped when the block ends."""
    async with coordinators(nats_url, postgres_url, **(FACE | options)) as [coordinator]:
        await eventually(lambda: coordinator._http.address, 10, what="HTTP is served")
        async with httpx.AsyncClient(base_url=coordinator._http.address, timeout=20) as client:
            yield client


async def test_it_answers_before_its_servers_do_and_says_what_is_missing(
    nats_server: RunningNats, postgres_url: str
) -> None:
    await nats_server.kill()
    async with serving(nats_server.url, postgres_url) as client:
        assert (await client.get("/healthz")).json() == {"alive": True}
        assert await ready(client, ["this coordinator: it waits for its servers"])
        refused = await client.get("/api/list", headers=SHOWN)
        assert refused.status_code == 503
        assert refused.json()["detail"] == "this coordinator waits for its servers; ask again"
        assert (await client.get("/")).status_code == 200
        await nats_server.start()
        await eventually(lambda: ready(client), 20)
        assert (await client.get("/api/list", headers=SHOWN)).json()["tasks"] == []


async def test_it_says_which_server_is_away_and_when_it_is_back(
    nats_server: RunningNats, postgres_server: RunningPostgres
) -> None:
    async with serving(nats_server.url, postgres_server.url) as client:
        await eventually(lambda: ready(client), 20)
        await nats_server.kill()
        await eventually(lambda: ready(client, ["NATS", "streams"]), 15)
        await nats_server.start()
        await eventually(lambda: ready(client), 20)
        await postgres_server.kill()
        await eventually(lambda: ready(client, ["PostgreSQL"]), 15)
        refused = await client.get("/api/list", headers=SHOWN)
        assert refused.status_code == 503
        assert refused.headers["retry-after"] == "1"
        assert (await client.get("/healthz")).status_code == 200
        await postgres_server.start()
        await eventually(lambda: ready(client), 20)


async def test_a_stop_lets_answers_out_and_waits_for_nobody_else(
    nats_server: RunningNats, postgres_url: str
) -> None:
    waits = {"task": "01a228d3-8b1d-728f-a4a8-c99741d7b99b", "wait_s": 1}
    half = (
        "POST /api/submit HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Authorization: {SHOWN['Authorization']}\r\nContent-Length: 10\r\n\r\n{{"
    )
    async with httpx.AsyncClient(timeout=20, headers=SHOWN) as patient:
        async with serving(nats_server.url, postgres_url) as client:
            await eventually(lambda: ready(client), 20)
            host, port = client.base_url.host, client.base_url.port
            idle, slow = [await asyncio.open_connection(host, port) for _ in range(2)]
            slow[1].write(half.encode())
            asking = patient.get(client.base_url.join("/api/get"), params=waits)
            under_way = asyncio.create_task(asking)
            await asyncio.sleep(0.3)  # until it is asked
            stopped_at = time.monotonic()
        assert time.monotonic() - stopped_at < 5
        assert (await under_way).status_code == 404
    for reader, writer in (idle, slow):
        with pytest.raises((EOFError, ConnectionError)):
            await reader.readexactly(100_000)
        writer.transport.abort()
    with pytest.raises(OSError, match="Connect"):
        await asyncio.open_connection(host, port)


async def test_coordinators_share_a_socket_that_outlives_each_of_them(
    nats_server: RunningNats, postgres_url: str
) -> None:
    with listen("127.0.0.1:0") as shared:
        face = {"console_token": CONSOLE_TOKEN}
        failed, asked, going = 0, 0, True

        async def ask() -> None:
            nonlocal failed, asked
            while going:
                async with httpx.AsyncClient(base_url=url_of(shared), timeout=20) as client:
                    answer = await client.get("/api/list", headers=SHOWN)
                failed += answer.status_code != 200
                asked += 1

        first = coordinators(nats_server.url, postgres_url, http_fd=os.dup(shared.fileno()), **face)
        async with first:
            async with httpx.AsyncClient(base_url=url_of(shared)) as client:
                await eventually(lambda: ready(client), 20)
            asking = asyncio.create_task(ask())
            for _ in range(3):
                descriptor = os.dup(shared.fileno())
                async with coordinators(
                    nats_server.url, postgres_url, http_fd=descriptor, **face
                ) as [second]:
                    await eventually(lambda: second._http._probes._looks, 20)
                    before = asked
                    await eventually(lambda: asked > before + 20, 20)  # noqa: B023
            going = False
            await asking
        assert failed == 0, f"{failed} of {asked}"
        with socket.create_connection(shared.getsockname()):  # it still listens
            pass


async def test_with_a_certificate_it_is_served_on_tls_only(
    nats_server: RunningNats, postgres_url: str, tmp_path: Path
) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.sign("coordinator")
    tls = {"http_cert": certificate, "http_key": key}
    async with serving(nats_server.url, postgres_url, **tls) as untrusting:
        assert untrusting.base_url.scheme == "https"
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            await untrusting.get("/healthz")
        trusted = ssl.create_default_context(cafile=str(authority.ca))
        async with httpx.AsyncClient(base_url=untrusting.base_url, verify=trusted) as client:
            await eventually(lambda: ready(client), 20)
            answer = await client.get("/api/list", headers=SHOWN)
            assert answer.status_code == 200
            assert answer.headers["strict-transport-security"] == "max-age=31536000"
            plain = f"http://127.0.0.1:{untrusting.base_url.port}/healthz"
            with pytest.raises(httpx.TransportError):
                await client.get(plain)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"http": "127.0.0.1"}, "cannot serve HTTP at '127.0.0.1': give HOST:PORT"),
        ({"http": "127.0.0.1:http"}, "cannot serve HTTP at '127.0.0.1:http': give HOST:PORT"),
        ({"http": "127.0.0.1:70000"}, "cannot serve HTTP at '127.0.0.1:70000': "),
        ({"http": "192.0.2.1:80"}, "cannot serve HTTP at '192.0.2.1:80': .*assign"),
        (
            {"http": "127.0.0.1:0", "http_cert": "/no/such.pem", "http_key": "/no/such.key"},
            "HEADWAY_HTTP_CERT, HEADWAY_HTTP_KEY: cannot be used for TLS: ",
        ),
    ],
)
async def test_a_coordinator_that_cannot_listen_says_so_and_ends(
    given: dict[str, str], reason: str
) -> None:
    nowhere = {"nats_url": "nats://127.0.0.1:1", "postgres_url": "postgresql://127.0.0.1:1/x"}
    with pytest.raises(CannotListen, match=reason):
        await Coordinator(Settings(**nowhere, **given)).run(asyncio.Event())


def test_the_next_free_port_is_taken_if_one_is_not() -> None:
    with listen_near("127.0.0.1", 18_480) as first:
        port = first.getsockname()[1]
        with listen_near("127.0.0.1", port) as second:
            assert port < second.getsockname()[1] < port + 50
        with pytest.raises(CannotListen) as taken:
            listen(f"127.0.0.1:{port}")
    said = f"cannot serve HTTP at '127.0.0.1:{port}': Address already in use; choose another"
    assert str(taken.value) == said


def test_whoever_asked_for_a_port_that_is_taken_is_told_how_to_get_one(tmp_path: Path) -> None:
    with listen("127.0.0.1:0") as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(CannotListen) as taken:
            DataDirectory(tmp_path).listen(address)
    assert str(taken.value) == (
        f"cannot serve HTTP at {address!r}: Address already in use; choose another, or leave "
        "--http away to get a free one"
    )


def test_an_address_of_ipv6_is_one() -> None:
    with listen("[::1]:0") as listening:
        port = listening.getsockname()[1]
        assert url_of(listening, tls=True) == f"https://[::1]:{port}"
