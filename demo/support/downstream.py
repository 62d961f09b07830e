"""The shop's services behind the agents: orders, policy, payments, mail, and what `research` uses.

A process of its own: `python -m headway.demo.support.downstream --port PORT --data DIR` serves on
loopback until SIGTERM, and writes down each call. Payments want a gate token that is signed by the
coordinator, whose public keys are in KEYS_FILE, and made out for this very invocation, this tool
and these arguments; a large refund passes only by the tool that a person has to approve.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from functools import partial
from pathlib import Path

from headway.agents import gates
from headway.agents.errors import InvalidInput, Refused
from headway.agents.gates import PublicKeys
from headway.demo.support.callbook import Answer, Request, Service, refusal
from headway.demo.support.service import serve
from headway.demo.support.tickets import LARGE_REFUND_CENTS, order_of, policy_on

SERVICES_FILE = "services.sqlite3"
KEYS_FILE = "gate-keys.json"

ORDERS = "orders"
POLICY = "policy"
PAYMENTS = "payments"
MAIL = "mail"
PRICES = "prices"
PURCHASES = "purchases"

REFUND_TOOL = "refund"
LARGE_REFUND_TOOL = "large_refund"

_PRICES_CENTS = {"north": 410, "south": 380, "west": 395}
SUPPLIERS = tuple(_PRICES_CENTS)


def look_up(request: Request) -> Answer:
    """An order, by its name."""
    order = order_of(str(request.body.get("order")))
    return refusal(404, "there is no such order") if order is None else Answer(asdict(order))


def policy(request: Request) -> Answer:
    """The rule on a topic."""
    return Answer({"policy": policy_on(str(request.body.get("topic")))})


def pay_back(keys: Path, request: Request) -> Answer:
    """Pay for an order that came back, or was damaged; at most what it cost."""
    name, cents = request.body.get("order"), request.body.get("amount_cents")
    order = order_of(str(name))
    if order is None or not isinstance(cents, int) or not 0 < cents <= order.price_cents:
        return refusal(400, "this is not an amount that was paid for this order")
    tool = LARGE_REFUND_TOOL if cents >= LARGE_REFUND_CENTS else REFUND_TOOL
    why_not = _closed(keys, request, tool)
    if why_not:
        return refusal(403, why_not)
    receipt = {"receipt": f"refund of {name}", "amount_cents": cents}
    return Answer(receipt, effect=(order.order, str(cents)))


def _closed(keys: Path, request: Request, tool: str) -> str:
    """Why the gate does not let a call pass; nothing if it does."""
    try:
        gate = gates.verify(
            request.gate,
            PublicKeys.model_validate_json(keys.read_bytes()),
            tool=tool,
            arguments_digest=gates.arguments_digest((), request.body),
        )
    except (Refused, InvalidInput) as refused:
        return str(refused)
    if str(gate.invocation) != request.invocation:
        return "the gate token is for another invocation"
    return ""


def send_mail(request: Request) -> Answer:
    """Put a letter into the outbox."""
    to, subject, text = (str(request.body.get(each, "")) for each in ("to", "subject", "text"))
    if "@" not in to:
        return refusal(400, f"{to!r} is not an address")
    return Answer({"sent_to": to}, effect=(to, f"{subject}\n{text}"))


def ask_price(request: Request) -> Answer:
    """What a supplier wants for a mug."""
    cents = _PRICES_CENTS.get(str(request.body.get("supplier")))
    return refusal(404, "there is no such supplier") if cents is None else Answer({"cents": cents})


def purchase(request: Request) -> Answer:
    """Order mugs from a supplier, for a project."""
    project, supplier = str(request.body.get("project")), str(request.body.get("supplier"))
    if supplier not in _PRICES_CENTS:
        return refusal(404, "there is no such supplier")
    return Answer({"bought_from": supplier}, effect=(project, supplier))


def services(keys: Path) -> dict[str, Service]:
    """Everything that is served, by path. `keys` is a file with the coordinator's public keys."""
    return {
        ORDERS: Service(look_up),
        POLICY: Service(policy),
        PAYMENTS: Service(partial(pay_back, keys), once=True),
        MAIL: Service(send_mail, once=True),
        PRICES: Service(ask_price),
        PURCHASES: Service(purchase, once=True),
    }


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(description="The services behind the support desk's agents.")
    parser.add_argument("--port", type=int, required=True, help="on 127.0.0.1")
    parser.add_argument("--data", type=Path, required=True, help=f"holds {KEYS_FILE}")
    chosen = parser.parse_args()
    serve(chosen.port, chosen.data / SERVICES_FILE, services(chosen.data / KEYS_FILE))


if __name__ == "__main__":
    main()
