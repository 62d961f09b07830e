"""The chunk parser: any cut of the byte stream gives the same messages."""

from __future__ import annotations

import random

import pytest
from headway.agents.parser import CONTROL_LINE_MAX_BYTES, ChunkParser
from nats.errors import ProtocolError

Seen = tuple[str, str, bytes, bytes]


class FakeClient:
    """Notes what the original parser and the error path are given."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []

    async def _process_msg(self, *message: object) -> None:
        self.calls.append(("msg", *message))

    async def _process_ping(self) -> None:
        self.calls.append(("ping",))

    async def _process_pong(self) -> None:
        self.calls.append(("pong",))

    async def _process_info(self, info: dict[str, object]) -> None:
        self.calls.append(("info", info["server_id"]))

    async def _error_cb(self, error: Exception) -> None:
        self.calls.append(("error", str(error)))

    async def _process_op_err(self, error: Exception) -> None:
        self.calls.append(("reconnect",))


def parser_for(client: FakeClient, seen: list[Seen]) -> ChunkParser:
    def on_message(subject: str, reply: str, headers: bytes, payload: bytes) -> None:
        seen.append((subject, reply, headers, payload))

    return ChunkParser(client, {b"7": on_message})  # type: ignore[arg-type]


HEADERS = b"NATS/1.0\r\nA: b\r\n\r\n"
BIG = random.Random(1).randbytes(200_000) + b"\r\nMSG x 7 3\r\n"
STREAM = (
    b"PING\r\n"
    b"MSG a.b 7 5\r\nhe\r\no\r\n"
    b"MSG a.c 7 reply.to 0\r\n\r\n"
    b"MSG other 8 back 3\r\nxyz\r\n"
    b'INFO {"server_id":"S"}\r\n'
    b"HMSG a.d 7 %d %d\r\n%b\r\n"
    % (len(HEADERS), len(HEADERS) + 3, HEADERS + b"abc")
    + b"HMSG a.e 7 in.box %d %d\r\n%b\r\n" % (len(HEADERS), len(HEADERS), HEADERS)
    + b"+OK\r\n"
    + b"HMSG else 9 %d %d\r\n%b\r\n" % (len(HEADERS), len(HEADERS) + 1, HEADERS + b"z")
    + b"MSG big 7 %d\r\n%b\r\n" % (len(BIG), BIG)
    + b"PONG\r\n"
    + b"-ERR 'Permissions Violation for Publish to \"x\"'\r\n"
    + b"MSG a.z 7 1\r\nz\r\n"
)
OURS: list[Seen] = [
    ("a.b", "", b"", b"he\r\no"),
    ("a.c", "reply.to", b"", b""),
    ("a.d", "", HEADERS, b"abc"),
    ("a.e", "in.box", HEADERS, b""),
    ("big", "", b"", BIG),
    ("a.z", "", b"", b"z"),
]


def check_all(client: FakeClient, seen: list[Seen]) -> None:
    assert seen == OURS
    assert client.calls == [
        ("ping",),
        ("msg", 8, b"other", b"back", b"xyz", None),
        ("info", "S"),
        ("msg", 9, b"else", b"", b"z", HEADERS),
        ("pong",),
        ("error", "nats: 'Permissions Violation for Publish to \"x\"'"),
    ]


async def test_one_chunk_gives_every_message_in_order() -> None:
    client, seen = FakeClient(), list[Seen]()
    await parser_for(client, seen).parse(STREAM)
    check_all(client, seen)


@pytest.mark.parametrize("cut", [1, 2, 3, 7, 4096, 32768])
async def test_chunks_of_one_size_give_the_same_messages(cut: int) -> None:
    client, seen = FakeClient(), list[Seen]()
    parser = parser_for(client, seen)
    for at in range(0, len(STREAM), cut):
        await parser.parse(STREAM[at : at + cut])
    check_all(client, seen)


@pytest.mark.parametrize("seed", range(50))
async def test_random_cuts_give_the_same_messages(seed: int) -> None:
    chance = random.Random(seed)
    client, seen = FakeClient(), list[Seen]()
    parser = parser_for(client, seen)
    cuts = sorted(chance.sample(range(1, len(STREAM)), 20) + chance.choices(range(400), k=20))
    for start, end in zip([0, *cuts], [*cuts, len(STREAM)], strict=True):
        await parser.parse(STREAM[start:end])
    check_all(client, seen)


async def test_reset_forgets_the_half_message_of_a_lost_connection() -> None:
    client, seen = FakeClient(), list[Seen]()
    parser = parser_for(client, seen)
    await parser.parse(b"MSG a 7 100\r\nhalf")
    parser.reset()
    await parser.parse(b"MSG a 7 2\r\nok\r\n")
    assert seen == [("a", "", b"", b"ok")]


async def test_reset_during_a_chunk_drops_the_rest_of_it() -> None:
    client, seen = FakeClient(), list[Seen]()
    parser = parser_for(client, seen)

    async def reset_then_note() -> None:
        parser.reset()

    client._process_ping = reset_then_note  # type: ignore[method-assign]
    await parser.parse(b"PING\r\nMSG a 7 1\r\nx\r\nMSG a 7")
    await parser.parse(b"MSG a 7 1\r\ny\r\n")
    assert seen == [("a", "", b"", b"y")]


async def test_a_failing_callback_loses_only_its_own_message() -> None:
    client, seen = FakeClient(), list[Seen]()

    def on_message(subject: str, reply: str, headers: bytes, payload: bytes) -> None:
        if payload == b"1":
            raise RuntimeError("boom")
        seen.append((subject, reply, headers, payload))

    parser = ChunkParser(client, {b"7": on_message})  # type: ignore[arg-type]
    await parser.parse(b"MSG a 7 1\r\n1\r\nMSG a 7 1\r\n2\r\n")
    assert seen == [("a", "", b"", b"2")]


@pytest.mark.parametrize("line", [b"-ERR 'Stale Connection'\r\n", b"-ERR\r\n", b"-ERR 'Odd'\r\n"])
async def test_an_error_that_is_not_about_permissions_asks_for_a_new_connection(
    line: bytes,
) -> None:
    client = FakeClient()
    await parser_for(client, []).parse(line)
    assert ("reconnect",) in client.calls


@pytest.mark.parametrize(
    "chunk",
    [b"MSG a 7 many\r\n", b"MSG\r\n", b"HELLO\r\n", b"x" * (CONTROL_LINE_MAX_BYTES + 1)],
)
async def test_bytes_that_are_not_the_protocol_are_a_protocol_error(chunk: bytes) -> None:
    with pytest.raises(ProtocolError):
        await parser_for(FakeClient(), []).parse(chunk)
