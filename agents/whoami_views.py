"""Who asks: what `whoami` answers, as a pydantic model."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Whoami(BaseModel):
    """Who coordinators take the caller for. `name` and `role` are those of the token, "" where none
    is asked for; `operations`: what the role may ask for, of which `submit` has its own tasks only.
    """

    model_config = ConfigDict(extra="forbid")

    name: str
    role: str
    operations: list[str]

    def may(self, operation: str) -> bool:
        return operation in self.operations
