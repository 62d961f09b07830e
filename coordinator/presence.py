"""Which agents are there, by what they say of themselves. Lossy and only ever a hint."""

from __future__ import annotations

from collections.abc import Callable

from headway.agents.catalogue_views import (
    INSTANCE_HEADER,
    PRESENCE_LAPSE_S,
    Instance,
    InstanceView,
    Presence,
)
from headway.agents.headers import parse_headers
from headway.agents.strays import is_stray
from headway.agents.subjects import TOKEN
from headway.coordinator.clock import monotonic
from pydantic import ValidationError

INSTANCES_MAX = 10_000  # remembered; more are ignored, so that junk cannot fill the memory


class Roll:
    """The agent instances heard of lately."""

    def __init__(self, monotonic: Callable[[], float] = monotonic) -> None:
        self._monotonic = monotonic
        self._heard: dict[tuple[str, str], tuple[InstanceView, float]] = {}

    def hear(self, subject: str, _reply: str, headers: bytes, body: bytes) -> None:
        """Take note of a presence message; what is not one is ignored."""
        if is_stray(headers):
            return
        agent = subject.rpartition(".")[2]
        try:
            said = Presence.model_validate_json(body)
        except ValidationError:
            return
        if said.agent != agent or TOKEN.fullmatch(agent) is None:
            return
        key = (agent, said.worker)
        if said.stopping:
            self._heard.pop(key, None)
        elif key in self._heard or len(self._heard) < INSTANCES_MAX:
            view = InstanceView(**said.model_dump(), **_itself(headers).model_dump())
            self._heard[key] = (view, self._monotonic())

    def servers(self) -> dict[str, dict[str, str]]:
        """By agent, the live instances with the nats-server that each is connected to."""
        return {
            agent: {said.worker: said.server for said in instances}
            for agent, instances in self.instances().items()
        }

    def instances(self) -> dict[str, list[InstanceView]]:
        """The live instances, by agent."""
        oldest = self._monotonic() - PRESENCE_LAPSE_S
        self._heard = {key: entry for key, entry in self._heard.items() if entry[1] >= oldest}
        found: dict[str, list[InstanceView]] = {}
        for (agent, _), (said, _) in sorted(self._heard.items()):
            found.setdefault(agent, []).append(said)
        return found


def _itself(headers: bytes) -> Instance:
    """What an instance says of itself; nothing if that is not said, or not understood."""
    said = parse_headers(headers).get(INSTANCE_HEADER.lower(), "{}")
    try:
        return Instance.model_validate_json(said)
    except ValidationError:
        return Instance()
