"""The rules of collections: registered as versions, the newest kept at hand.

Always holds: what is kept is what PostgreSQL had when it was asked last. Whoever writes by these
rules has the write check that they are still the newest.
"""

from __future__ import annotations

from collections.abc import Mapping

from headway.agents.document_views import CollectionRequest, CollectionView
from headway.coordinator.documenting import Rules, definition_of, rules_of
from headway.coordinator.errors import Refusal
from headway.coordinator.store import Store

KEPT_MAX = 1_024  # collections


class Rulebook:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: dict[str, Rules] = {}

    async def register(
        self, request: CollectionRequest, now: int, *, change: bool
    ) -> CollectionView:
        """Store a definition as the newest, or find it stored; `now` in ms. Refusal (422, 413) if
        it cannot be one, or (403) if there is another and it is not to be changed."""
        body, digest = definition_of(request)
        rules_of(1, request)  # which refuses what is no schema
        if not change:
            await self._check_same(request)
        while True:
            rows = await self._store.fetch("register_collection", request.name, digest, body, now)
            if rows:
                return CollectionView(
                    name=request.name,
                    version=rows[0]["version"],
                    registered_at=rows[0]["registered_at"],
                )

    async def _check_same(self, request: CollectionRequest) -> None:
        for row in await self._store.fetch("newest_definitions", [request.name]):
            if CollectionRequest.model_validate_json(row["body"]) != request:
                raise Refusal(
                    f"collection {request.name!r} has other rules, which an agent cannot change: "
                    "have a person do it (headway document collection)",
                    403,
                )

    async def newest(self, versions: Mapping[str, int]) -> dict[str, Rules]:
        """The rules of these collections, which were at these versions a moment ago."""
        changed = [name for name, version in versions.items() if not self._knows(name, version)]
        if changed:
            if len(self._kept) + len(changed) > KEPT_MAX:
                self._kept.clear()
                changed = list(versions)
            for row in await self._store.fetch("newest_definitions", changed):
                definition = CollectionRequest.model_validate_json(row["body"])
                self._kept[definition.name] = rules_of(row["version"], definition)
        return {name: self._kept[name] for name in versions}

    def _knows(self, name: str, version: int) -> bool:
        return name in self._kept and self._kept[name].version == version
