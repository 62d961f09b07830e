"""Marks on fields of answers: what of them role `view` does not see. Pure.

A payload is what tasks are about: inputs, results, what agents say of them, arguments of tools'
calls, bodies of documents and messages. Names, states, times and people's own words are not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Mask:
    """How a marked field is masked: any `value` or `text` whole; of a `reason` what an agent said;
    of `data` every field that is not known to be harmless."""

    kind: Literal["value", "text", "reason", "data"]


PAYLOAD = Mask("value")
PAYLOAD_TEXT = Mask("text")
REASON = Mask("reason")
PAYLOADS_WITHIN = Mask("data")
