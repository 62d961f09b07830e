"""The demo's sagas hold, and name only actions that the books and agents know."""

from __future__ import annotations

import pytest
from headway.demo.books import ACTIONS
from headway.demo.sagas import fulfil_order, refund
from headway.sagas.builder import Saga
from headway.sagas.definition import Definition


@pytest.mark.parametrize("saga", [fulfil_order(), refund()], ids=lambda saga: saga.name)
def test_a_saga_survives_its_json_form(saga: Saga) -> None:
    definition = saga.define()
    assert Definition.from_json(definition.to_json()) == definition


@pytest.mark.parametrize("saga", [fulfil_order(), refund()], ids=lambda saga: saga.name)
def test_every_action_is_in_the_books_with_the_same_claim_to_change_nothing(saga: Saga) -> None:
    for step in saga.define().steps.values():
        assert ACTIONS[step.action].read_only == step.read_only


def test_stock_is_reserved_while_credit_is_checked_and_both_before_the_charge() -> None:
    steps = fulfil_order().define()
    assert steps.steps["reserve"].after == steps.steps["check-credit"].after == ()
    assert steps.ancestors["charge"] == {"reserve", "check-credit"}
    assert steps.pivot == "ship"
