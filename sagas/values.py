"""Values that are made thousands of times a second: frozen for the type checker alone.

What `dataclass(frozen=True)` does at run time takes as long as all the rest of making one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value(kind: type[T]) -> type[T]:
    """A dataclass of slots that is never changed, and can be hashed."""
    return dataclass(slots=True, unsafe_hash=True)(kind)
