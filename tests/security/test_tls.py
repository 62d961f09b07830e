"""All three links by TLS: clients and agents to NATS, coordinators to NATS and to PostgreSQL."""

from __future__ import annotations

import asyncio
import shutil
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from harness.coordination import client_of, coordinators, registered
from harness.eventually import eventually
from harness.rights import OWNER, granted
from harness.services import RunningNats, nats_in
from headway.agents import Agent, Context
from headway.agents.connection import connect
from headway.agents.errors import InvalidInput, Unavailable
from headway.agents.worker import Worker
from headway.coordinator.database import Database
from headway.coordinator.errors import StoreUnavailable
from headway.coordinator.process import start_process
from headway.sagas import Saga
from security.certificates import Authority
from security.tls_front import tls_front

VERIFIED = "CERTIFICATE_VERIFY_FAILED"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@asynccontextmanager
async def nats_with(
    authority: Authority, folder: Path, *users: object, more: str = ""
) -> AsyncIterator[str]:
    """A nats-server with a certificate; yields where it is, without a scheme."""
    directory = folder / "nats"
    directory.mkdir(mode=0o755)
    for path, name in zip((*authority.sign("server"), authority.ca), "ckr", strict=True):
        shutil.copy(path, directory / name)
        (directory / name).chmod(0o644)
    tls = f'tls {{ cert_file: "c", key_file: "k", ca_file: "r", timeout: 5, {more} }}\n'
    nats: RunningNats = nats_in(directory, users, extra=tls)
    await nats.server.prepare()
    process = start_process(nats.server.launch(), nats.server.log)
    try:
        yield nats.url.removeprefix("nats://")
    finally:
        await process.stop(5)


async def let_in(url: str, **options: object) -> None:
    async def once() -> bool:
        try:
            async with await connect(url, name="test", timeout=1.0, **options) as connection:
                await connection.wire.flush()
                writer = connection.nc._transport._io_writer
                return writer.get_extra_info("ssl_object") is not None
        except Unavailable as error:
            raise AssertionError(str(error)) from error

    assert await eventually(once)


async def refusal(url: str) -> str:
    with pytest.raises(Unavailable) as refused:
        await connect(url, name="test", timeout=0.8)
    return str(refused.value)


async def refusals(*urls: str) -> list[str]:
    """Why we are not let in at each of them, all tried at once."""
    return await asyncio.gather(*map(refusal, urls))


async def test_a_client_and_a_server_talk_by_tls_and_trust_only_their_authority(
    authority: Authority, tmp_path: Path
) -> None:
    async with nats_with(authority, tmp_path) as place:
        await let_in(f"tls://{place}?ca={authority.ca}")
        other = Authority(tmp_path, "others").ca
        here = place.replace("127.0.0.1", "127.0.0.2")
        *untrusted, elsewhere = await refusals(
            f"tls://{place}?ca={other}",
            f"tls://{place}",
            f"nats://{place}",
            f"tls://{here}?ca={authority.ca}",
        )
        assert [why for why in untrusted if VERIFIED not in why] == []
        assert OWNER.password not in elsewhere


async def test_a_server_that_wants_a_certificate_gets_one(
    authority: Authority, tmp_path: Path
) -> None:
    mine, key = authority.sign("me")
    stranger, strange_key = Authority(tmp_path, "others").sign("stranger")
    async with nats_with(authority, tmp_path, more="verify: true") as place:
        trusting = f"tls://{place}?ca={authority.ca}"
        await let_in(f"{trusting}&cert={mine}&key={key}")
        strange = f"{trusting}&cert={stranger}&key={strange_key}"
        for why in await refusals(trusting, strange):
            assert "no NATS server" in why


async def test_nothing_is_said_in_the_clear_if_the_handshake_comes_first(
    authority: Authority, tmp_path: Path
) -> None:
    async with nats_with(authority, tmp_path, more="handshake_first: true") as place:
        await let_in(f"tls://{place}?ca={authority.ca}&handshake_first=1")
        assert "no NATS server" in await refusal(f"tls://{place}?ca={authority.ca}")


async def test_no_secret_is_told_to_a_server_that_offers_no_tls(nats_server: RunningNats) -> None:
    """As somebody in between would have it."""
    heard: list[bytes] = []

    async def pretend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'INFO {"server_id":"x","version":"2.15.1","max_payload":1048576}\r\n')
        heard.append(await reader.read(4096))
        writer.close()

    server = await asyncio.start_server(pretend, "127.0.0.1")
    port = server.sockets[0].getsockname()[1]
    url = nats_server.url.replace("nats://", "tls://")
    refused, real = await refusals(f"tls://me:secret@127.0.0.1:{port}", url)
    assert "the server offers no TLS, and the URL wants it (tls://)" in refused
    assert "secret" not in refused
    assert set(heard) == {b""}
    server.close()
    assert "the server offers no TLS" in real


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ("ca=/no/such", "the NATS URL's /no/such cannot be used: No such file or directory"),
        ("cert=/x", "the NATS URL must have both cert and key, or neither"),
        ("ca_file=/x", "the NATS URL has an unknown option 'ca_file'; there are ca, cert, key"),
    ],
)
async def test_options_that_cannot_be_are_told(options: str, complaint: str) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        await connect(f"tls://127.0.0.1:1?{options}", name="test")
    if options.startswith("ca="):
        with pytest.raises(InvalidInput, match="'ca' is an option of tls://, not of nats://"):
            await connect(f"nats://127.0.0.1:1?{options}", name="test")


async def test_postgresql_is_reached_by_tls_and_its_certificate_checked(
    postgres_url: str, authority: Authority, tmp_path: Path
) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*authority.sign("server"))
    other = Authority(tmp_path, "others").ca
    async with tls_front(postgres_url, context) as (url, asked):
        good = Database(
            f"{url}?sslmode=verify-full&sslrootcert={authority.ca}", size=1, pinned_plans=False
        )
        assert await good.migrate() > 0
        assert asked == [True]
        await good.close()
        bad = Database(f"{url}?sslmode=verify-full&sslrootcert={other}", size=1, pinned_plans=False)
        with pytest.raises(StoreUnavailable, match=VERIFIED):
            await bad.migrate()


async def test_a_task_is_done_with_all_three_links_by_tls(
    postgres_url: str, authority: Authority, tmp_path: Path
) -> None:
    """Client, agent with its own key, coordinator and PostgreSQL."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*authority.sign("database"))
    agent = Agent("shop")

    @agent.action("echo")
    async def echo(ctx: Context, words: str) -> str:
        return words * 2

    keys, user = granted("shop")
    stop = asyncio.Event()
    async with (
        nats_with(authority, tmp_path, user) as place,
        tls_front(postgres_url, context) as (database, _),
    ):
        url = f"tls://{place}?ca={authority.ca}"
        await let_in(url)
        async with (
            coordinators(url, f"{database}?sslmode=verify-full&sslrootcert={authority.ca}"),
            client_of(url) as client,
            await connect(url, name="agent", credentials=keys) as connection,
        ):
            await registered(client, Saga("twice").step("a", "shop.echo", read_only=True))
            work = asyncio.create_task(Worker(connection, agent).run(stop))
            view = await client.run("twice", "x" * 300_000, timeout=20)
            assert view.status == "succeeded"
            stop.set()
            await work
