"""What is shipped for watching: a dashboard, alerts and a collector's settings name what exists."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from headway.coordinator.instruments import INSTRUMENTS
from headway.coordinator.prometheus import label_of

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
DASHBOARD: dict[str, Any] = json.loads((DEPLOY / "grafana/headway.json").read_text())
ALERTS: dict[str, Any] = yaml.safe_load((DEPLOY / "prometheus/alerts.yml").read_text())
COLLECTOR: dict[str, Any] = yaml.safe_load((DEPLOY / "otel-collector.yaml").read_text())
SERVICES: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
OBSERVERS = {name: each for name, each in SERVICES.items() if each.get("profiles") == ["observe"]}
LABELS = {each.prometheus: {label_of(a) for a in each.attributes} for each in INSTRUMENTS.values()}
METRIC = re.compile(r"\bheadway_\w+(?=[\[{ )]|$)")


def expressions() -> list[str]:
    panels = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    rules = [rule["expr"] for group in ALERTS["groups"] for rule in group["rules"]]
    return panels + rules


def metrics_in(expression: str) -> set[str]:
    """Names of metrics; what is in `by (…)` and in braces are labels."""
    return set(re.findall(r"\bheadway_\w+", re.sub(r"by \([^)]*\)|\{[^}]*\}", "", expression)))


def labels_in(expression: str) -> set[str]:
    grouped = re.findall(r"by \(([^)]*)\)", expression)
    selected = re.findall(r"(\w+)=~?\"", expression)
    return {name.strip() for group in grouped for name in group.split(",")} | set(selected)


def known(name: str) -> str | None:
    """The metric that a series belongs to."""
    for each in INSTRUMENTS.values():
        suffixes = ("_bucket", "_sum", "_count") if each.kind == "histogram" else ("",)
        if any(name == each.prometheus + suffix for suffix in suffixes):
            return each.prometheus
    return None


@pytest.mark.parametrize("expression", expressions())
def test_each_expression_names_metrics_and_labels_that_exist(expression: str):
    named = {name: known(name) for name in metrics_in(expression)}
    assert named
    assert None not in named.values(), named
    there = {"le"}.union(*(LABELS[metric] for metric in named.values() if metric))
    assert labels_in(expression) <= there


def test_each_metric_is_on_the_dashboard():
    shown = {known(name) for each in expressions() for name in metrics_in(each)}
    assert {each.prometheus for each in INSTRUMENTS.values()} <= shown


def test_the_choices_on_the_dashboard_are_of_labels_that_exist():
    for variable in DASHBOARD["templating"]["list"]:
        [(metric, label)] = re.findall(r"label_values\((\w+), (\w+)\)", variable["query"]["query"])
        assert label in LABELS[metric]


def test_panels_do_not_overlap_and_have_titles_of_their_own():
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells
    titles = [panel["title"] for panel in DASHBOARD["panels"]]
    assert len(titles) == len(set(titles))


def test_each_alert_says_what_is_wrong_and_what_to_look_at():
    rules = [rule for group in ALERTS["groups"] for rule in group["rules"]]
    for rule in rules:
        assert set(rule["annotations"]) == {"summary", "description"}
        assert rule["labels"]["severity"] in ("warning", "critical")


def test_each_pipeline_of_the_collector_is_made_of_parts_that_are_declared():
    for pipeline in COLLECTOR["service"]["pipelines"].values():
        for kind in ("receivers", "processors", "exporters"):
            assert set(pipeline[kind]) <= COLLECTOR[kind].keys()
    assert COLLECTOR["receivers"]["otlp"]["protocols"].keys() == {"http"}


def test_the_profile_that_watches_mounts_files_that_exist_and_hosts_that_it_starts():
    assert OBSERVERS.keys() == {"collector", "tempo", "loki", "prometheus", "grafana"}
    mounts = [mount for each in OBSERVERS.values() for mount in each.get("volumes", [])]
    files = [ROOT / mount.split(":")[0] for mount in mounts if mount.startswith("./")]
    assert files
    assert all(file.is_file() for file in files)
    text = "".join(file.read_text() for file in files if file.suffix != ".json")
    hosts = set(re.findall(r"(?:http://|\")(\w+):(?:\d{4})", text)) - {"0"}
    assert hosts <= OBSERVERS.keys()
    assert {yaml.safe_load(file.read_text()) is None for file in files} == {False}
