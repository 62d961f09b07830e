"""What somebody without rights, or with few, may try on HTTP: all of it is refused, cheaply."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import httpx
import orjson
import pytest
from harness.eventually import eventually
from harness.served import Served, detail_of, submitted
from headway.agents.identity import new_task_id
from headway.coordinator import http_connections, http_requests
from headway.coordinator.http_connections import CONNECTIONS_MAX
from headway.coordinator.http_requests import BODY_MAX_BYTES

MEBIBYTE = 1_048_576
SUBMIT = {"saga": "linear", "input": {"number": 1}}


async def posted(
    client: httpx.AsyncClient, body: bytes | str, kind: str = "application/json"
) -> httpx.Response:
    return await client.post("/api/submit", content=body, headers={"Content-Type": kind})


# Addresses


@pytest.mark.parametrize(
    "path",
    [
        "/console/../app.py",
        "/console/..%2fapp.py",
        "/console/%2e%2e/app.py",
        "/console/%2e%2e%2fapp.py",
        "/console/..%5capp.py",
        "/console//etc/passwd",
        "/console/%2fetc%2fpasswd",
        "/console/__init__.py",
        "/console/pages",
        "/console/",
        "/console/index.html%00",
        "/console/index.html/",
        "/console/.index.html",
        "/console/a\u0301.js",
        "/console/" + "x" * 5_000 + ".js",
        "/api",
        "/api/",
        "/api/get/",
        "/api//get",
        "/API/get",
        "/api/get%00",
        "/api/internal",
        "/docs",
        "/redoc",
        "/openapi.json",
        "/metrics/x",
        "/nowhere",
    ],
)
async def test_there_is_nothing_at_other_addresses(
    operator: httpx.AsyncClient, served: Served, path: str
) -> None:
    """Sent as it stands: clients would tidy it up."""
    target = path.encode().decode("latin-1").encode("latin-1")
    shown = f"Authorization: Bearer {served.tokens['operate']}\r\n".encode()
    request = b"GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\n" % (target, shown)
    answer = await served.raw_answer(request)
    assert answer.split(b" ")[1] in (b"404", b"400"), answer[:200]
    assert b"import" not in answer
    assert b"root:" not in answer


async def test_a_page_is_given_for_what_is_a_page_and_only_there(
    anybody: httpx.AsyncClient,
) -> None:
    index = (await anybody.get("/")).text
    for page in ("/tasks", "/tasks/x/y", "/parked", "/agents", "/sagas/linear", "/dead"):
        answer = await anybody.get(page)
        assert (answer.status_code, answer.text) == (200, index)
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert (await anybody.post("/tasks")).status_code == 405


@pytest.mark.parametrize(
    "path", ["/nope", "/api/nope", "/console/nope.js", "/tasksx", "/favicon.ico"]
)
async def test_what_is_not_there_is_a_problem_for_programs_and_a_page_for_people(
    anybody: httpx.AsyncClient, path: str
) -> None:
    for wanted in ("*/*", "application/json", "application/problem+json"):
        answer = await anybody.get(path, headers={"Accept": wanted})
        assert detail_of(answer)[0] == 404
    person = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    answer = await anybody.get(path, headers=person)
    if path.startswith(("/api/", "/console/")):
        assert detail_of(answer)[0] == 404
        return
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.text == (await anybody.get("/")).text
    known = person | {"If-None-Match": answer.headers["etag"]}
    assert (await anybody.get(path, headers=known)).status_code == 404
    head = await anybody.head(path, headers=person)
    assert (head.status_code, head.content) == (404, b"")
    assert (await anybody.post(path, headers=person)).status_code == 404


async def test_every_file_of_the_console_is_served_and_is_not_sent_twice(
    anybody: httpx.AsyncClient,
) -> None:
    folder = Path(__file__).parents[2] / "coordinator/console"
    files = [each for each in folder.rglob("*") if each.suffix in (".js", ".css", ".html", ".svg")]
    assert len(files) > 20
    for file in files:
        answer = await anybody.get(f"/console/{file.relative_to(folder)}")
        assert (answer.status_code, answer.content) == (200, file.read_bytes()), file
        again = {"If-None-Match": answer.headers["etag"]}
        kept = await anybody.get(f"/console/{file.relative_to(folder)}", headers=again)
        assert (kept.status_code, kept.content) == (304, b"")


async def test_a_method_that_is_none_is_told_which_one_is(operator: httpx.AsyncClient) -> None:
    for path, method, allowed in [
        ("/api/submit", "GET", {"POST"}),
        ("/api/get", "POST", {"GET", "HEAD"}),
        ("/api/get", "OPTIONS", {"GET", "HEAD"}),
        ("/api/get", "TRACE", {"GET", "HEAD"}),
        ("/api/submit", "WHATEVER", {"POST"}),
        ("/healthz", "DELETE", {"GET", "HEAD"}),
    ]:
        answer = await operator.request(method, path)
        assert detail_of(answer) == (
            405,
            "this address takes other methods: see the header Allow",
        )
        assert set(answer.headers["allow"].split(", ")) == allowed


async def test_another_site_is_told_nothing_by_a_browser(operator: httpx.AsyncClient) -> None:
    asking = {
        "Origin": "https://evil.example",
        "Access-Control-Request-Method": "GET",
        "Access-Control-Request-Headers": "authorization",
    }
    for answer in (
        await operator.options("/api/list", headers=asking),
        await operator.get("/api/list", headers={"Origin": "https://evil.example"}),
    ):
        assert not [name for name in answer.headers if name.startswith("access-control-")]


async def test_every_answer_tells_the_browser_what_it_may_not(anybody: httpx.AsyncClient) -> None:
    for path in ("/", "/console/main.js", "/api/list", "/nowhere", "/healthz", "/api/openapi.json"):
        headers = (await anybody.get(path)).headers
        assert headers["content-security-policy"] == (
            "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
            "object-src 'none'"
        )
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["x-frame-options"] == "DENY"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["cache-control"] in ("no-store", "no-cache")
        assert not {"server", "set-cookie", "strict-transport-security"} & set(headers)


# Bodies


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", 422),
        (b"null", 422),
        (b"[]", 422),
        (b"{", 422),
        (b'{"saga":"linear","input":1}{', 422),
        (b'{"saga":"linear","input":NaN}', 422),
        (b'{"saga":"linear","input":1e999}', 422),
        (b'{"saga":"linear","input":' + b"9" * 400 + b"}", 422),
        (b'{"saga":"linear","input":"\xff"}', 422),
        (b'{"saga":"linear","input":"\\ud800"}', 422),
        (b'{"saga":"linear","input":"a\\u0000b"}', 200),
        (b'{"saga":"lin\\u0000ear"}', 404),
        (b'{"saga":"linear","attributes":{"a":"\\u0000"}}', 422),
        (b'{"saga":"linear","task":"\\u0000"}', 422),
        (b'{"saga":"linear","owner":"bob"}', 422),
        (b'{"saga":"linear","__proto__":{}}', 422),
        (b'{"saga":"linear","input":' + b"[" * 65 + b"]" * 65 + b"}", 422),
        (b"[" * 1_000_000, 422),
        (b'{"a":' * 200_000 + b"1" + b"}" * 200_000, 413),
        (b'{"saga":"linear","input":' + b'{"a":' * 5_000 + b"1" + b"}" * 5_000 + b"}", 422),
        (b'\xef\xbb\xbf{"saga":"linear"}', 422),
        ('{"saga":"linear"}'.encode("utf-16"), 422),
    ],
)
async def test_what_is_no_good_json_is_refused(
    operator: httpx.AsyncClient, body: bytes, code: int
) -> None:
    answer = await posted(operator, body)
    assert answer.status_code == code, answer.text
    assert len(answer.content) < 2_000
    keyed = await operator.post(
        "/api/submit",
        content=body,
        headers={"Content-Type": "application/json", "Idempotency-Key": str(new_task_id())},
    )
    assert keyed.status_code == code


@pytest.mark.parametrize(
    "kind",
    ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "json", "*/*"],
)
async def test_a_body_of_another_type_is_refused_so_that_no_form_can_send_one(
    operator: httpx.AsyncClient, kind: str
) -> None:
    answer = await posted(operator, json.dumps(SUBMIT), kind)
    assert detail_of(answer) == (415, "Content-Type: the body must be application/json")


async def test_a_packed_body_is_refused_unopened(operator: httpx.AsyncClient) -> None:
    packed = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    answer = await operator.post("/api/submit", content=b"\x1f\x8b", headers=packed)
    assert detail_of(answer) == (415, "Content-Encoding: the body must be plain")


async def test_the_largest_input_is_taken_and_a_larger_one_is_not(
    operator: httpx.AsyncClient,
) -> None:
    assert (await submitted(operator, "x" * (MEBIBYTE - 2))).status_code == 200
    refused = await submitted(operator, "x" * (MEBIBYTE - 1))
    assert detail_of(refused) == (
        413,
        f"input: {MEBIBYTE + 1} bytes, more than {MEBIBYTE}; keep it elsewhere and send a "
        "reference",
    )


async def test_a_body_beyond_the_limit_is_refused_however_it_comes(
    operator: httpx.AsyncClient, served: Served
) -> None:
    expected = 413, f"the body has more than {BODY_MAX_BYTES} bytes"
    assert detail_of(await posted(operator, b" " * (BODY_MAX_BYTES + 1))) == expected

    async def in_chunks() -> object:
        for _ in range(20):
            yield b" " * 100_000

    chunked = await operator.post(
        "/api/submit", content=in_chunks(), headers={"Content-Type": "application/json"}
    )
    assert detail_of(chunked) == expected
    head = (
        "POST /api/submit HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {served.tokens['operate']}\r\nContent-Length: 99999999999\r\n\r\n"
    )
    began_at = time.monotonic()
    answer = await served.raw_answer(head.encode())
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert time.monotonic() - began_at < http_connections.LINGER_S + 3


async def test_without_a_token_a_large_body_is_not_read(served: Served) -> None:
    head = b"POST /api/submit HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n"
    async with served.raw() as (reader, writer):
        writer.write(head)
        assert (await reader.readline()).startswith(b"HTTP/1.1 401 ")


async def test_where_there_is_no_webhook_no_body_is_read(served: Served) -> None:
    head = (
        b"POST /hooks/nobody HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Content-Length: 1000000\r\n\r\n"
    )
    async with served.raw() as (reader, writer):
        writer.write(head)
        async with asyncio.timeout(http_requests.BODY_WITHIN_S / 2):
            assert (await reader.readline()).startswith(b"HTTP/1.1 404 ")


# What is no request


@pytest.mark.parametrize(
    "request_sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 500,
        b"GET /healthz\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: a\r\nX : b\r\n\r\n",
        b"GET /health\0z HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"\r\n" * 10_000,
    ],
)
async def test_what_is_no_request_is_refused_and_the_connection_ends(
    served: Served, anybody: httpx.AsyncClient, request_sent: bytes
) -> None:
    answer = await served.raw_answer(request_sent)
    if answer:
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 ")
        assert b"application/problem+json" in head
        assert orjson.loads(body)["detail"] == "this is no request of HTTP/1.1"


async def test_no_request_hides_in_another_ones_body(served: Served) -> None:
    """Where a proxy and we would not agree on where that ends."""
    hidden = b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    for how in (
        b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n" % (len(hidden) + 5),
        b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
    ):
        request = b"POST /api/submit HTTP/1.1\r\nHost: a\r\n" + how + b"\r\n0\r\n\r\n" + hidden
        answer = await served.raw_answer(request)
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert b"a body has a length or an encoding for its transfer, not both" in answer
        assert b"alive" not in answer


async def test_an_address_or_headers_that_are_too_long_are_refused(served: Served) -> None:
    for head in (
        b"GET /healthz HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 20_000,
        b"GET /healthz?" + b"x" * 20_000 + b" HTTP/1.1\r\nHost: a",
        b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\nHost: a",
        b"GET /healthz HTTP/1.1\r\nHost: a\r\n" + b"\r\n".join([b"X: y"] * 9_000),
    ):
        answer = await served.raw_answer(head + b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 431 ")
        assert b"the address and the headers have more than 16384 bytes" in answer


async def test_no_name_of_a_host_or_a_forwarding_header_lets_anybody_in(
    anybody: httpx.AsyncClient,
) -> None:
    for headers in (
        {"Host": "evil.example"},
        {"X-Forwarded-For": "127.0.0.1"},
        {"Forwarded": "for=127.0.0.1"},
        {"X-Original-URL": "/healthz"},
        {"X-HTTP-Method-Override": "GET"},
    ):
        assert (await anybody.get("/api/agents", headers=headers)).status_code == 401
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket"}
    assert (await anybody.get("/api/agents", headers=upgrade)).status_code == 401


# What is slow, and what is many


async def test_a_request_that_does_not_get_on_is_given_up(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_connections, "HEAD_WITHIN_S", 0.5)
    monkeypatch.setattr(http_requests, "BODY_WITHIN_S", 0.5)
    shown = f"Authorization: Bearer {served.tokens['operate']}\r\n".encode()
    head = b"POST /api/submit HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" + shown

    async def dripping(first: bytes, drip: bytes) -> tuple[float, bytes]:
        began_at, answer = time.monotonic(), b""
        async with served.raw() as (reader, writer):
            writer.write(first)
            while time.monotonic() - began_at < 10:
                try:
                    async with asyncio.timeout(0.1):
                        chunk = await reader.read(65_536)
                except TimeoutError:
                    writer.write(drip)
                    continue
                except ConnectionError:
                    break
                if not chunk:
                    break
                answer += chunk
        return time.monotonic() - began_at, answer

    took, answer = await dripping(b"", b"")
    assert (took < 5, answer) == (True, b"")
    took, answer = await dripping(b"GET /healthz HT", b"T")
    assert (took < 5, answer) == (True, b"")
    took, answer = await dripping(b"GET /healthz HTTP/1.1\r\nHost: x\r\n", b"X: y\r\n")
    assert (took < 5, answer) == (True, b"")
    took, answer = await dripping(head + b"Content-Length: 1000\r\n\r\n{", b" ")
    assert took < 8
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert orjson.loads(answer.partition(b"\r\n\r\n")[2])["detail"] == (
        "the body was not whole after 0.5 s"
    )
    took, answer = await dripping(
        b"POST /api/submit HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n", b" "
    )
    assert took < 5
    assert answer.startswith(b"HTTP/1.1 401 ")
    ended = served.coordinator._http._server._server.server_state
    await eventually(lambda: not ended.tasks, 5)


async def test_so_many_connections_are_kept_and_those_who_are_in_are_served(
    served: Served, operator: httpx.AsyncClient
) -> None:
    await operator.get("/api/agents")
    opened = [
        await asyncio.open_connection("127.0.0.1", int(served.address.rpartition(":")[2]))
        for _ in range(CONNECTIONS_MAX + 20)
    ]
    try:
        state = served.coordinator._http._server._server.server_state
        await eventually(lambda: len(state.connections) == CONNECTIONS_MAX, 5)
        assert (await operator.get("/api/agents")).status_code == 200
        receipt = await submitted(operator, {"number": 1})
        waited = {"task": receipt.json()["task"], "wait_s": 5}
        assert (await operator.get("/api/get", params=waited)).json()["status"] == "succeeded"
    finally:
        for _, writer in opened:
            writer.transport.abort()
    await eventually(lambda: len(state.connections) < 10, 5)
    async with httpx.AsyncClient(base_url=served.address) as another:
        assert (await another.get("/healthz")).status_code == 200


async def test_who_leaves_before_the_answer_leaves_nothing_behind(served: Served) -> None:
    shown = f"Authorization: Bearer {served.tokens['operate']}\r\n"
    for request in (
        f"GET /api/get?task={new_task_id()}&wait_s=1 HTTP/1.1\r\nHost: x\r\n{shown}\r\n",
        f"POST /api/submit HTTP/1.1\r\nHost: x\r\n{shown}Content-Type: application/json\r\n"
        "Content-Length: 100\r\n\r\n{",
    ):
        for _ in range(10):
            async with served.raw() as (_, writer):
                writer.write(request.encode())
                await writer.drain()
    state = served.coordinator._http._server._server.server_state
    await eventually(lambda: not state.tasks, 5)
    assert served.coordinator._http._places.count == 0
