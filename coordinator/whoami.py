"""The operation `whoami`: callers are told who they are taken for, and what they may ask for."""

from __future__ import annotations

from headway.agents.views import Nothing
from headway.agents.whoami_views import Whoami
from headway.coordinator.caller import Caller
from headway.coordinator.roles import NEEDS
from headway.coordinator.serving import Serve, typed_by


def operations() -> dict[str, Serve]:
    return {"whoami": typed_by(Nothing, Whoami, tell)}


async def tell(_request: Nothing, caller: Caller) -> Whoami:
    return Whoami(name=caller.name, role=caller.role, operations=open_to(caller.role))


def open_to(role: str) -> list[str]:
    """The names of the operations that a role may ask for; all, without a role."""
    return sorted(name for name, need in NEEDS.items() if not role or need.is_met_by(role))
