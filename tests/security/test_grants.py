"""Granting agents keys of their own: keys, their files, the database, and a server that runs."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
from pathlib import Path

import pytest
from command_shell import Ended, Shell
from harness.eventually import eventually
from headway.agents import Agent, credentials
from headway.agents.connection import connect
from headway.agents.credentials import Credentials
from headway.agents.errors import DeclarationError, InvalidInput, Unavailable
from headway.agents.nkeys import UserKey, is_public_user_key, new_seed
from headway.agents.runner import serve
from headway.coordinator.embedded import Embedded
from headway.coordinator.errors import Refusal
from headway.coordinator.grants import grants_in
from headway.coordinator.permissions import entry

ANY_SEED = re.compile("SU[A-Z2-7]{56}")  # longer than a public key
SEED = "SUAAAAICAMCAKBQHBAEQUCYMBUHA6EARCIJRIFIWC4MBSGQ3DQOR4H776Y"
PUBLIC = "UAB2CB576PHBBPQ5ODORRZ2LYCMWPZGWGCN2KDK7DXOIMZASKUY3RLKK"
SIGNATURE = (
    "+HTq4d6DDHVNb8MsTRAZtSIa0vXA/yuZblwTA7JT5wYzmKBxJ2wpYfjHh7hcptZlidbVw/6ZLyubjm/yDk+OCQ=="
)


def test_a_key_is_what_nats_takes_for_one() -> None:
    key = UserKey.of(SEED)
    assert key.public == PUBLIC
    assert key.sign("nonce").decode() == SIGNATURE
    assert len(base64.b64decode(SIGNATURE)) == 64
    assert is_public_user_key(PUBLIC)
    assert SEED not in repr(key)
    assert UserKey.of(new_seed()).public != UserKey.of(new_seed()).public


@pytest.mark.parametrize(
    "wrong",
    ["", "SU", PUBLIC, SEED[:-1], SEED.lower(), f"{SEED[:20]}A{SEED[21:]}", "SU!" + SEED[3:]],
)
def test_what_is_no_seed_is_refused_without_a_word_of_it(wrong: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        UserKey.of(wrong)
    assert str(refused.value) == "this is not the seed of a NATS user key (SU…)"
    assert not is_public_user_key(wrong) or wrong == PUBLIC


def test_credentials_are_a_file_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "shop.creds"
    credentials.write(path, "shop", SEED)
    assert path.stat().st_mode & 0o777 == 0o600
    found = credentials.read(path)
    assert (found.agent, found.key.public, found.inbox_prefix) == ("shop", PUBLIC, "_INBOX_shop")
    assert SEED not in repr(found)
    with pytest.raises(FileExistsError):
        credentials.write(path, "shop", SEED)
    os.chmod(path, 0o640)
    with pytest.raises(InvalidInput, match="may be read by others: chmod 600 it, and grant a new"):
        credentials.read(path)


@pytest.mark.parametrize("content", ["", SEED, "# agent: shop\n", f"# agent: a b\n{SEED}\n"])
def test_a_file_without_credentials_is_told_as_such(tmp_path: Path, content: str) -> None:
    path = tmp_path / "x.creds"
    path.touch(0o600)
    path.write_text(content)
    with pytest.raises(InvalidInput) as refused:
        credentials.read(path)
    text = f"{path} has no credentials of an agent: `headway agents grant NAME` makes them"
    assert str(refused.value) == text
    with pytest.raises(InvalidInput, match=r"cannot be read: No such file or directory"):
        credentials.read(tmp_path / "none")


async def test_each_agent_of_a_process_needs_credentials_if_one_has_some() -> None:
    shop = Credentials("shop", UserKey.of(SEED))
    with pytest.raises(DeclarationError) as refused:
        await serve([Agent("mail")], "nats://127.0.0.1:1", credentials=[shop])
    assert str(refused.value) == (
        "there are no credentials for agent 'mail', only for shop: `headway agents grant mail` "
        "makes them"
    )


async def test_keys_are_granted_listed_and_revoked_in_the_database(postgres_url: str) -> None:
    other = UserKey.of(new_seed()).public
    async with grants_in(postgres_url) as grants:
        made = await grants.grant("shop", PUBLIC, "ann")
        assert (made.agent, made.public_key, made.granted_by) == ("shop", PUBLIC, "ann")
        await grants.grant("shop", other, "bob")
        assert [each.public_key for each in await grants.good()] == [PUBLIC, other]
        assert await grants.revoke("shop", "eve", PUBLIC) == [PUBLIC]
        assert [each.public_key for each in await grants.good()] == [other]
        first, second = await grants.all()
        assert (first.revoked_by, second.revoked_at) == ("eve", None)
        for refused, code, text in (
            (grants.grant("shop", PUBLIC, "ann"), 409, f"key {PUBLIC} was granted before"),
            (grants.grant("a.b", other, "ann"), 422, "'a.b' cannot name an agent: use 1 to 64 of "),
            (grants.grant("shop", SEED, "x"), 422, "this is not the public key of a NATS user (U"),
            (grants.revoke("mail", "ann"), 404, "agent 'mail' has no key that is good"),
            (grants.revoke("shop", "x", PUBLIC), 404, f"agent 'shop' has no key {PUBLIC} that is "),
        ):
            with pytest.raises(Refusal) as refusal:
                await refused
            assert refusal.value.code == code
            assert refusal.value.reason.startswith(text)


async def test_a_running_server_lets_in_whom_the_database_grants_a_key_and_goes_on(
    tmp_path: Path,
) -> None:
    """And started again, it lets in whom it let in before, before the database is asked."""
    keys, mail = Credentials("shop", UserKey.of(SEED)), Credentials("mail", UserKey.of(new_seed()))
    async with Embedded(tmp_path / "data", coordinators=0) as embedded:
        url, process = embedded.agents_nats_url, embedded.processes["nats"].pid
        with pytest.raises(Unavailable, match="Authorization Violation"):
            await connect(url, name="early", credentials=keys, timeout=1)
        async with await connect(embedded.nats_url, name="people") as people:
            lost: list[str] = []
            people.wire.on_disconnect(lambda: lost.append(""))
            async with grants_in(embedded.postgres_url) as grants:
                await grants.grant("shop", PUBLIC, "ann")
                shop = await connect(url, name="shop", credentials=keys, timeout=10)
                await grants.revoke("shop", "ann")
                await eventually(lambda: not shop.nc.is_connected)
                await shop.close()
                await grants.grant("mail", mail.key.public, "ann")
                await (await connect(url, name="mail", credentials=mail, timeout=10)).close()
                await eventually(lambda: "mail" in (tmp_path / "data/grants.json").read_text())
            assert embedded.processes["nats"].pid == process
            assert lost == []
        users = (tmp_path / "data/nats/nats.conf").read_text()
        assert "hw.events.mail.*" in users
        assert "hw.events.shop.*" not in users
        for name in ("secrets.json", "connections.json", "nats/nats.conf", "grants.json"):
            assert (tmp_path / "data" / name).stat().st_mode & 0o077 == 0
    async with Embedded(tmp_path / "data", coordinators=0) as embedded:
        url = embedded.agents_nats_url
        await (await connect(url, name="mail", credentials=mail, timeout=1)).close()
        with pytest.raises(Unavailable, match="Authorization Violation"):
            await connect(url, name="late", credentials=keys, timeout=1)


async def test_on_a_server_of_ones_own_the_command_tells_what_to_configure(
    postgres_url: str, tmp_path: Path
) -> None:
    shell = Shell(tmp_path, {"HEADWAY_POSTGRES_URL": postgres_url})

    async def run(*words: str) -> Ended:
        arguments = ("agents", *words, "--nats-url", "nats://127.0.0.1:9")
        return await asyncio.to_thread(shell.run_here, *arguments)

    shown = await run("grant", "shop")
    assert shown.code == 0, shown.err
    (tmp_path / "shown").touch(0o600)
    (tmp_path / "shown").write_text(shown.out)
    key = credentials.read(tmp_path / "shown").key
    async with grants_in(postgres_url) as grants:
        [grant] = await grants.all()
    assert grant.public_key == key.public
    assert not ANY_SEED.search(shown.err)
    assert entry(grant.user) in shown.err.replace("\n", "")
    written = await run("grant", "shop", "--creds", "shop.creds", "--json")
    told = json.loads(written.out)
    assert told["authorization"].startswith(f'{{ nkey: "{told["public_key"]}"')
    assert credentials.read(tmp_path / "shop.creds").key.public == told["public_key"]
    assert not ANY_SEED.search(written.out + written.err)
    again = await run("grant", "shop", "--creds", "shop.creds")
    assert (again.code, again.out) == (2, "")
    assert "shop.creds exists; take another name for the credentials" in again.err
    listed = await run("keys", "--json")
    assert [each["public_key"] for each in listed.lines] == [key.public, told["public_key"]]
    revoked = await run("revoke", "shop", "--key", key.public, "--json")
    assert json.loads(revoked.out) == {"agent": "shop", "revoked": [key.public]}
    assert "take it out of its authorization block" in revoked.err
    assert (await run("revoke", "mail")).code == 3
