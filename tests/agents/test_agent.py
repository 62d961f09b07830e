"""Declaring agents."""

from __future__ import annotations

from typing import Any

import pytest
from headway.agents.agent import Agent
from headway.agents.context import Context
from headway.agents.errors import DeclarationError


async def charge(ctx: Context, order: Any) -> Any: ...


async def refund(ctx: Context, order: Any, receipt: Any) -> None: ...


def test_decorators_return_the_function_unchanged() -> None:
    agent = Agent("payments")
    assert agent.action("charge")(charge) is charge
    assert agent.compensation("refund")(refund) is refund
    assert {name: each.phase for name, each in agent.handlers.items()} == {
        "charge": "action",
        "refund": "compensation",
    }
    assert repr(agent) == "Agent('payments', handlers=['charge', 'refund'])"


@pytest.mark.parametrize("name", ["", "a.b", "a b", "ä", "x" * 65, "a>"])
def test_names_that_cannot_be_subjects_are_refused(name: str) -> None:
    with pytest.raises(DeclarationError, match="cannot be a subject token"):
        Agent(name)
    with pytest.raises(DeclarationError, match="cannot be a subject token"):
        Agent("payments").action(name)


def test_two_handlers_of_one_name_are_refused_even_across_phases() -> None:
    agent = Agent("payments")
    agent.action("charge")(charge)
    with pytest.raises(DeclarationError, match="two handlers named 'charge'; rename one"):
        agent.compensation("charge")


def test_a_decorator_without_its_name_says_how_to_write_it() -> None:
    agent = Agent("payments")
    with pytest.raises(DeclarationError, match=r'write @payments\.action\("name"\)'):
        agent.action(charge)  # type: ignore[arg-type]
