"""How the agents call services: one POST of JSON, in a thread, without any package."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

import orjson
from headway.agents.errors import ToolError

TIMEOUT_S = 120.0  # a model may think for long
REASON_MAX_CHARS = 500


async def post(url: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> dict[str, Any]:
    """The answer to `body`. ToolError when the service says no, and would say so again; OSError
    when it does not answer as it should."""
    if not url.startswith(("http://", "https://")):
        raise ToolError(f"{url!r} is not an HTTP address", retryable=False, no_effect=True)
    return await asyncio.to_thread(_post, url, orjson.dumps(body), headers)


def _post(url: str, body: bytes, headers: Mapping[str, str]) -> dict[str, Any]:
    request = urllib.request.Request(  # noqa: S310 - the scheme is checked above
        url, body, {"Content-Type": "application/json", **headers}
    )
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:  # noqa: S310
            found = orjson.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            reason = _reason(error.read())
        if error.code < 500 and error.code != 429:
            raise ToolError(reason, retryable=False, no_effect=True) from error
        raise ConnectionError(f"{error.code}: {reason}") from error
    if not isinstance(found, dict):
        raise ConnectionError("the answer is not a JSON object")
    return found


def _reason(body: bytes) -> str:
    try:
        return str(orjson.loads(body)["error"]["message"])[:REASON_MAX_CHARS]
    except (ValueError, KeyError, TypeError):
        return body[:REASON_MAX_CHARS].decode(errors="replace")
