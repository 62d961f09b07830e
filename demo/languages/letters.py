"""The agent `letters` of the travel demo, written with the SDK: confirms a trip by mail."""

from __future__ import annotations

import json
import os
import urllib.request
from typing import Any

from headway.agents import Agent, Context, Reject
from headway.demo.languages.conforming import conforming
from headway.demo.languages.hotels import BOOKINGS_VARIABLE, CALL_TIMEOUT_S
from headway.demo.languages.trips import Trip

letters = conforming(Agent("letters"))


@letters.action("confirm")
def confirm(ctx: Context, trip: Trip) -> dict[str, Any]:
    if "@" not in trip.mail:
        raise Reject(f"{trip.mail!r} is no address")
    body = json.dumps({"kind": "letter", "trip": str(ctx.task)}).encode()
    url = f"{os.environ[BOOKINGS_VARIABLE]}/{ctx.operation_id}"
    request = urllib.request.Request(url, body, method="PUT")  # noqa: S310 - the demo's own
    with urllib.request.urlopen(request, timeout=CALL_TIMEOUT_S) as answer:  # noqa: S310
        number = json.loads(answer.read())["number"]
    return {"letter": number, "flight": ctx.results["flight"], "room": ctx.results["hotel"]}
