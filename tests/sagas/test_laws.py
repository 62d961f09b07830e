"""Every law, in every reachable state of every shape.

HEADWAY_LAWS=wide searches further: more attempts, and every kind of fault in every shape.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from corpus import SHAPES, Shape, widened
from explore import Search
from forks import FORKED
from headway.sagas import attempts, finish, loops
from kinds import KINDS
from laws import LAWS, LAWS_OF_SEARCH

Searched = Callable[[str, int, int, int], None]
TAKE_OVERS_MAX = 2  # instead of the machine's own limits, so that a search gets beyond them
REPEATS = 2
REJECTIONS_MAX = 1
PEOPLE_STEPS_MAX = 3  # that people add, without further faults, to those of each step
WIDE = os.environ.get("HEADWAY_LAWS") == "wide"


@pytest.mark.parametrize("shape", [*SHAPES, *KINDS, *FORKED], ids=lambda shape: shape.name)
def test_every_law_holds_in_every_reachable_state(
    shape: Shape, searched: Searched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts, "CLAIMS_MAX", TAKE_OVERS_MAX)
    monkeypatch.setattr(attempts, "EPOCHS_MAX", TAKE_OVERS_MAX)
    monkeypatch.setattr(loops, "REPEATS", REPEATS)
    monkeypatch.setattr(finish, "REJECTIONS_MAX", REJECTIONS_MAX)
    counts = Search(widened(shape) if WIDE else shape).run()
    laws = len(LAWS) + len(LAWS_OF_SEARCH)
    searched(shape.name, counts.states, counts.transitions, laws)
    assert counts.states > (30 if shape.fork is None else 10)
    assert counts.refused > counts.states
    assert 0 < counts.calm_steps_max <= 2 * len(shape.definition.steps) + PEOPLE_STEPS_MAX
