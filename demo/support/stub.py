"""A stand-in for a model behind an OpenAI-compatible address, which needs no network.

A process of its own: `python -m headway.demo.support.stub --port PORT --data DIR` answers
`POST /v1/chat/completions` by script until SIGTERM, and writes down each call. A call is billed
once for each `Idempotency-Key`: repeated, it gets the same completion and costs nothing.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from headway.demo.support.callbook import Answer, Request, Service, refusal
from headway.demo.support.script import complete
from headway.demo.support.service import serve

COMPLETIONS = "v1/chat/completions"
STUB_FILE = "model.sqlite3"


def completion(request: Request) -> Answer:
    """The scripted completion of the conversation in `request`."""
    messages = request.body.get("messages")
    if not isinstance(messages, list) or not messages:
        return refusal(400, "messages: there is no conversation to complete")
    try:
        body = complete(messages)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return refusal(400, f"messages: not a conversation: {type(error).__name__}: {error}")
    return Answer(body, tokens=body["usage"]["total_tokens"])


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(description="A scripted model with an OpenAI-compatible API.")
    parser.add_argument("--port", type=int, required=True, help="on 127.0.0.1")
    parser.add_argument("--data", type=Path, required=True, help="where to keep the log of calls")
    chosen = parser.parse_args()
    serve(chosen.port, chosen.data / STUB_FILE, {COMPLETIONS: Service(completion, once=True)})


if __name__ == "__main__":
    main()
