"""What the API can do with sagas and agents: requests in, views out."""

from __future__ import annotations

from collections.abc import Callable

import orjson
from headway.agents import catalogue_views, views
from headway.coordinator import portraits
from headway.coordinator.breaker import Breaker
from headway.coordinator.breakers import view_of
from headway.coordinator.census import Census
from headway.coordinator.errors import Refusal
from headway.coordinator.jetstream import JetStreamError
from headway.coordinator.presence import Roll
from headway.coordinator.schemas import InputCheck
from headway.coordinator.serving import Serve, typed
from headway.coordinator.store import Store
from headway.coordinator.taskchecks import check_conditions
from headway.coordinator.topology import Topology
from headway.sagas.definition import Definition
from headway.sagas.errors import DefinitionError


class Catalogue:
    """The sagas that are registered, and the agents that they are for."""

    def __init__(
        self,
        store: Store,
        topology: Topology,
        roll: Roll,
        clock: Callable[[], int],
        breaker_of: Callable[[str], Breaker],
    ) -> None:
        self._store = store
        self._topology = topology
        self._roll = roll
        self._clock = clock
        self._breaker_of = breaker_of
        self._census = Census(store, clock)
        self._check = InputCheck()

    def operations(self) -> dict[str, Serve]:
        return {
            "saga.register": typed(
                catalogue_views.SagaDefinition, catalogue_views.SagaView, self.register
            ),
            "saga.get": typed(catalogue_views.SagaRef, catalogue_views.SagaView, self.saga),
            "saga.list": typed(views.Nothing, catalogue_views.SagaList, self.sagas),
            "agents": typed(views.Nothing, catalogue_views.AgentList, self.agents),
        }

    async def register(self, request: catalogue_views.SagaDefinition) -> catalogue_views.SagaView:
        try:
            definition = Definition.from_json(request.model_dump_json())
        except DefinitionError as error:
            raise Refusal(str(error), 422) from error
        self._check.compile(definition)
        check_conditions(definition)
        registered_at = await self._store.sagas.register(definition, self._clock())
        for agent in sorted(definition.agents()):
            await self._topology.ensure_agent(agent)
        return catalogue_views.SagaView(
            name=definition.name,
            version=definition.version,
            digest=definition.digest,
            registered_at=registered_at,
            definition=orjson.loads(definition.to_json()),
        )

    async def saga(self, request: catalogue_views.SagaRef) -> catalogue_views.SagaView:
        rows = await self._store.fetch("list_sagas")
        matching = [
            row
            for row in rows
            if row["name"] == request.name and request.version in (None, row["version"])
        ]
        if not matching:
            version = "" if request.version is None else f" version {request.version}"
            raise Refusal(f"there is no saga {request.name!r}{version}", 404)
        return portraits.saga_view(matching[-1])

    async def sagas(self, _request: views.Nothing) -> catalogue_views.SagaList:
        counted = await self._census.look()
        rows = await self._store.fetch("list_sagas")
        return catalogue_views.SagaList(
            sagas=[portraits.saga_in_list(row, counted) for row in rows], counted_at=counted.at
        )

    async def agents(self, _request: views.Nothing) -> catalogue_views.AgentList:
        instances = self._roll.instances()
        rows = await self._store.fetch("waiting_by_agent")
        waiting = {row["agent"]: row["waiting"] for row in rows}
        found = []
        for agent in sorted(await self.named()):
            try:
                queued, in_flight = await self._topology.queued(agent)
            except JetStreamError:  # its consumer is still to be made
                queued, in_flight = 0, 0
            breaker = self._breaker_of(agent)
            found.append(
                catalogue_views.AgentView(
                    agent=agent,
                    instances=instances.get(agent, []),
                    queued=queued,
                    in_flight=in_flight,
                    waiting=waiting.get(agent, 0),
                    ended=sum(each.ended for each in instances.get(agent, ())),
                    failed=sum(each.failed for each in instances.get(agent, ())),
                    breaker=None if breaker.state == "closed" else view_of(breaker),
                )
            )
        return catalogue_views.AgentList(agents=found)

    async def named(self) -> set[str]:
        """Every agent that was heard of or that a saga names."""
        found = set(self._roll.instances())
        for row in await self._store.fetch("list_sagas"):
            found |= Definition.from_json(row["body"]).agents()
        return found
