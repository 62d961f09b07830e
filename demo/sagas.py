"""The order desk's two sagas.

    fulfil-order    reserve ∥ check-credit  →  charge  →  ship (pivot)  →  notify
    refund          receive  →  inspect  →  pay back (pivot)  →  restock ∥ notify

Both take an `Order`. Intervals are short, so that a whole run, faults included, takes seconds.
"""

from __future__ import annotations

from headway.demo.orders import Order
from headway.sagas.builder import Saga
from headway.sagas.retry import Retry, Timeouts

FULFIL_ORDER = "fulfil-order"
REFUND = "refund"

ATTEMPT_LIMIT_S = 2.0  # a handler that takes longer is stopped, and its outcome is unknown

_LIMITS = Timeouts(start_to_close=ATTEMPT_LIMIT_S)
_BRISK = Retry(initial_interval=0.1, maximum_interval=0.5, maximum_attempts=6)
_DOGGED = Retry(initial_interval=0.1, maximum_interval=0.5, maximum_attempts=0)


def fulfil_order() -> Saga:
    """Reserve and check, charge, ship; whatever was done before a failed shipment is undone."""
    saga = Saga(FULFIL_ORDER, version=1, input=Order)
    saga.step(
        "reserve",
        "inventory.reserve",
        compensate="inventory.release",
        retry=_BRISK,
        compensation_retry=_DOGGED,
        timeouts=_LIMITS,
    )
    saga.step(
        "check-credit", "payments.check-credit", read_only=True, retry=_BRISK, timeouts=_LIMITS
    )
    saga.step(
        "charge",
        "payments.charge",
        compensate="payments.refund",
        after=("reserve", "check-credit"),
        retry=_BRISK,
        compensation_retry=_DOGGED,
        timeouts=_LIMITS,
    )
    saga.step("ship", "warehouse.ship", after="charge", pivot=True, retry=_DOGGED, timeouts=_LIMITS)
    saga.step("notify", "mail.confirm", after="ship", retry=_DOGGED, timeouts=_LIMITS)
    return saga


def refund() -> Saga:
    """Take the goods back and pay for them, unless they come back damaged."""
    saga = Saga(REFUND, version=1, input=Order)
    saga.step(
        "receive",
        "warehouse.receive",
        compensate="warehouse.send-back",
        retry=_BRISK,
        compensation_retry=_DOGGED,
        timeouts=_LIMITS,
    )
    saga.step(
        "inspect",
        "warehouse.inspect",
        after="receive",
        read_only=True,
        retry=_BRISK,
        timeouts=_LIMITS,
    )
    saga.step(
        "pay-back",
        "payments.pay-back",
        after="inspect",
        pivot=True,
        retry=_DOGGED,
        timeouts=_LIMITS,
    )
    saga.step("restock", "inventory.restock", after="pay-back", retry=_DOGGED, timeouts=_LIMITS)
    saga.step("notify", "mail.credit-note", after="pay-back", retry=_DOGGED, timeouts=_LIMITS)
    return saga
