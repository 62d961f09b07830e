"""The registered sagas. A version never changes, so what was read once is kept."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from headway.coordinator.database import Database
from headway.coordinator.errors import Refusal
from headway.sagas.definition import Definition


class Registry:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._definitions: dict[tuple[str, int], Definition] = {}
        self._newest: dict[str, int] = {}

    def known(self, name: str, version: int) -> Definition:
        """A definition that was learnt before."""
        return self._definitions[name, version]

    async def newest(self, sagas: Collection[str], *, fresh: bool) -> dict[str, Definition]:
        """The newest version of each of these sagas that is registered.

        Unless `fresh`, it may be one that was the newest before: a commit checks that it still is.
        """
        wanted = sorted(name for name in set(sagas) if fresh or name not in self._newest)
        if wanted:
            rows = await self._database.fetch("latest_sagas", wanted)
            await self.learn({(row["name"], row["version"]) for row in rows})
            self._newest.update((row["name"], row["version"]) for row in rows)
        return {
            name: self._definitions[name, self._newest[name]]
            for name in sagas
            if name in self._newest
        }

    async def definition(self, name: str, version: int) -> Definition | None:
        await self.learn({(name, version)})
        return self._definitions.get((name, version))

    async def register(self, definition: Definition, now: int) -> datetime:
        """Store a saga's version, or find it stored. Refusal if another definition has it."""
        row = (
            await self._database.fetch(
                "register_saga",
                definition.name,
                definition.version,
                definition.digest,
                definition.to_json(),
                now,
            )
        )[0]
        if row["digest"] != definition.digest:
            raise Refusal(
                f"saga {definition.name!r} version {definition.version} is registered with "
                "another definition: raise the version",
                409,
            )
        self._definitions[definition.name, definition.version] = definition
        registered: datetime = row["registered_at"]
        return registered

    async def learn(self, wanted: set[tuple[str, int]]) -> None:
        """Read those of these (name, version) that are not known yet and exist."""
        missing = [key for key in wanted if key not in self._definitions]
        if not missing:
            return
        names, versions = zip(*missing, strict=True)
        for row in await self._database.fetch("load_sagas", list(names), list(versions)):
            self._definitions[row["name"], row["version"]] = Definition.from_json(row["body"])
