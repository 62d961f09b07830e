"""The saga machine: pure decisions over values.

No network, no database, no clock, no randomness and no asyncio in this package; times, ids and
random numbers arrive in values. `transition` decides, `replay` folds, `outstanding` and `due`
tell what a state waits for.
"""

from headway.sagas.actions import Action, Dispatch, StartChild, Stop, UndoChild, Withdraw
from headway.sagas.builder import Saga
from headway.sagas.deadlines import due
from headway.sagas.definition import Definition
from headway.sagas.errors import DefinitionError, ForkRefused, ImpossibleInput, SagaError
from headway.sagas.fork import kept
from headway.sagas.invariants import violations
from headway.sagas.plan import planned
from headway.sagas.replay import fold, replay
from headway.sagas.retry import Retry, Timeouts
from headway.sagas.step import Step
from headway.sagas.task import Phase, StepState, StepStatus, Task, TaskStatus
from headway.sagas.transition import Transition, outstanding, transition

__all__ = [
    "Action",
    "Definition",
    "DefinitionError",
    "Dispatch",
    "ForkRefused",
    "ImpossibleInput",
    "Phase",
    "Retry",
    "Saga",
    "SagaError",
    "StartChild",
    "Step",
    "StepState",
    "StepStatus",
    "Stop",
    "Task",
    "TaskStatus",
    "Timeouts",
    "Transition",
    "UndoChild",
    "Withdraw",
    "due",
    "fold",
    "kept",
    "outstanding",
    "planned",
    "replay",
    "transition",
    "violations",
]
