"""Errors of the saga machine.

SagaError
├── DefinitionError     a saga that cannot be run; names the step and the remedy
├── ForkRefused         a task that cannot be forked so; says why, and from where it can be
└── ImpossibleInput     an input that no history of this task can explain
"""

from __future__ import annotations


class SagaError(Exception):
    """Root of the machine's errors."""


class DefinitionError(SagaError, ValueError):
    """A saga definition that cannot be run; the text names the step and the remedy."""


class ForkRefused(SagaError):
    """A task that cannot be forked from this step; the text says why, and what to do instead."""


class ImpossibleInput(SagaError):
    """An input that cannot happen to this task: unknown step, or an attempt never dispatched.

    Unlike a late or repeated input, which changes nothing, this one is refused with its reason.
    """
