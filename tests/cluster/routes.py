"""The network between the nodes: a proxy for each direction of each pair."""

from __future__ import annotations

import random

from harness.proxy import Proxy


class Routes:
    """Always holds: no route leads from one node to another but through its proxy."""

    def __init__(self, listening: dict[str, int], rng: random.Random) -> None:
        self._proxies = {
            (start, end): Proxy(port, rng)
            for start in listening
            for end, port in listening.items()
            if start != end
        }

    async def start(self) -> None:
        for proxy in self._proxies.values():
            await proxy.start()

    async def stop(self) -> None:
        for proxy in self._proxies.values():
            await proxy.stop()

    def port(self, start: str, end: str) -> int:
        """Where node `start` finds node `end`."""
        return self._proxies[start, end].port

    def cut_off(self, node: str) -> None:
        """Nothing passes between `node` and the others, and no connection ends: what is under way
        is held, as packets that are sent again and again would be."""
        for way, proxy in self._proxies.items():
            if node in way:
                proxy.hold("up", "down")

    def heal(self) -> None:
        for proxy in self._proxies.values():
            proxy.heal()
