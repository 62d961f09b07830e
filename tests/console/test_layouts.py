"""Laws of the console's pure layouts, in the browser that runs them: nothing lies on anything else,
and time never runs backwards."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from playwright.async_api import Page

pytestmark = pytest.mark.asyncio(loop_scope="session")

SEED = 20_261_130
BOX = {"width": 188, "height": 58}

DIAGRAM = """async ([steps, box]) => {
  const { layout } = await import("/console/diagram_layout.js");
  return [true, false].map((across) => {
    const { nodes, edges, width, height } = layout(steps, box, across);
    return { nodes: [...nodes], edges, width, height };
  });
}"""

SCALE = """async ([wanted, moments]) => {
  const { timescale } = await import("/console/timescale.js");
  const scale = timescale(wanted);
  return { places: moments.map((ms) => scale.x(ms)), folds: scale.folds, ticks: scale.ticks };
}"""

GANTT = """async ([timeline, wanted]) => {
  const { gantt } = await import("/console/gantt_layout.js");
  return gantt(timeline, wanted).rows.map(({ bars }) =>
    bars.map(({ x, width, kind, outcome, bars }) => [x, width, kind, outcome, bars.length]));
}"""


async def asked(page: Page, script: str, *values: Any) -> Any:
    await page.goto("/console/settings.json")  # a page of the same origin, with nothing on it
    return await page.evaluate(script, list(values))


@pytest.mark.parametrize("count", [1, 7, 60, 200])
async def test_no_step_of_a_diagram_lies_on_another(page: Page, count: int) -> None:
    chance = random.Random(SEED + count)
    print("seed", SEED + count)
    steps = [
        {
            "name": f"s{number}",
            "after": sorted(
                {f"s{chance.randrange(number)}" for _ in range(2)} if number else set()
            ),
        }
        for number in range(count)
    ]
    for drawn in await asked(page, DIAGRAM, steps, BOX):
        places = [(place["x"], place["y"]) for _, place in drawn["nodes"]]
        assert len(places) == count
        for at, (x, y) in enumerate(places):
            assert 0 <= x <= drawn["width"] - BOX["width"]
            assert 0 <= y <= drawn["height"] - BOX["height"]
            for other_x, other_y in places[:at]:
                apart = abs(x - other_x) >= BOX["width"] or abs(y - other_y) >= BOX["height"]
                assert apart, (at, steps)


async def test_an_edge_that_others_imply_is_not_drawn(page: Page) -> None:
    steps = [
        {"name": "a", "after": []},
        {"name": "b", "after": ["a"]},
        {"name": "c", "after": ["a", "b"]},
    ]
    [across, _] = await asked(page, DIAGRAM, steps, BOX)
    assert [(edge["from"], edge["to"]) for edge in across["edges"]] == [("a", "b"), ("b", "c")]


@pytest.mark.parametrize("fold", [True, False])
async def test_later_moments_are_further_right_folded_or_not(page: Page, fold: bool) -> None:
    chance = random.Random(SEED)
    print("seed", SEED)
    busy = [[at, at + chance.randrange(1, 400)] for at in (0, 90_000, 95_000, 400_000)]
    moments = sorted(chance.randrange(600_000) for _ in range(200))
    wanted = {"from": 0, "to": 600_000, "busy": busy, "width": 800, "fold": fold}
    scale = await asked(page, SCALE, wanted, moments)
    assert scale["places"] == sorted(scale["places"])
    assert 0 <= scale["places"][0] <= scale["places"][-1] <= 800.001
    assert len(scale["folds"]) == (2 if fold else 0)
    ticks = [tick["x"] for tick in scale["ticks"]]
    assert all(later - before >= 50 for before, later in itertools.pairwise(ticks))


async def test_what_is_too_small_to_tell_apart_is_drawn_as_one_with_the_gravest_outcome(
    page: Page,
) -> None:
    def bar(kind: str, began: float, ended: float, outcome: str) -> dict[str, Any]:
        at = [f"2026-11-30T00:00:{moment:06.3f}Z" for moment in (began, ended)]
        return {
            "kind": kind, "phase": "action", "began_at": at[0], "ended_at": at[1],
            "started_at": None, "outcome": outcome,
        }  # fmt: skip

    bars = [bar("attempt", n / 1000, n / 1000 + 0.001, "failed") for n in range(20)]
    bars += [bar("retry_wait", 0.02, 9, "over"), bar("attempt", 9, 10, "completed")]
    timeline = {
        "began_at": "2026-11-30T00:00:00Z", "settled_at": "2026-11-30T00:00:10Z",
        "steps": [{"name": "a", "bars": bars}], "marks": [], "holds": [], "compensations": [],
    }  # fmt: skip
    [row] = await asked(page, GANTT, timeline, {"width": 500, "nowMs": 0, "fold": False})
    assert [(kind, outcome, count) for _, _, kind, outcome, count in row] == [
        ("attempt", "failed", 20),
        ("retry_wait", "over", 1),
        ("attempt", "completed", 1),
    ]
