"""Metrics: what is counted, with how many series, and how it is told."""

from __future__ import annotations

import importlib
import pkgutil
import re

import opentelemetry.semconv._incubating.attributes as incubating
import pytest
from headway.agents import telemetry as t
from headway.coordinator.instruments import INSTRUMENTS, OTHER, SERIES_MAX, VALUES_MAX
from headway.coordinator.metrics import Metrics
from headway.coordinator.prometheus import text_of
from opentelemetry.semconv.attributes import error_attributes, service_attributes

OURS = ("headway.", "service.instance")
ATTRIBUTE = re.compile(r"[a-z_]+(\.[a-z_]+)+")


def conventional() -> set[str]:
    """Every attribute of the semantic conventions that are installed."""
    modules = [
        importlib.import_module(f"{incubating.__name__}.{each.name}")
        for each in pkgutil.iter_modules(incubating.__path__)
    ]
    values = [vars(module) for module in (*modules, error_attributes, service_attributes)]
    return {value for names in values for value in names.values() if isinstance(value, str)}


def test_each_attribute_that_is_not_ours_is_one_of_the_conventions():
    named = {name for name in vars(t).values() if isinstance(name, str)}
    foreign = {
        name
        for name in named
        if ATTRIBUTE.fullmatch(name) and not name.startswith(OURS) and name != t.RECORDS_LOGGER
    }
    assert {t.GEN_AI_AGENT, t.MESSAGING_SYSTEM, t.ERROR_TYPE} <= foreign
    assert foreign <= conventional()


def test_each_metric_is_told_apart_by_attributes_that_have_a_bound():
    for each in INSTRUMENTS.values():
        assert set(each.attributes) <= VALUES_MAX.keys(), each.name
        assert (each.kind == "histogram") == bool(each.bounds)


def test_values_beyond_the_bound_of_an_attribute_are_counted_as_other():
    metrics, bound = Metrics(), VALUES_MAX[t.SAGA]
    for number in range(bound + 50):
        metrics.add(t.TASKS_SUBMITTED, 1, f"saga-{number}")
        metrics.add(t.TASKS_SUBMITTED, 1, "saga-0")
    [reading] = metrics.read()
    assert len(reading.series) == bound + 1
    assert reading.series[OTHER,] == 50
    assert reading.series["saga-0",] == bound + 51


def test_a_metric_has_a_bound_on_its_series_whatever_its_attributes():
    metrics = Metrics()
    for agent in range(60):
        for error in range(60):
            metrics.add(t.FAILURES, 1, f"agent-{agent}", f"Error{error}")
    [reading] = metrics.read()
    assert len(reading.series) == SERIES_MAX + 1
    assert sum(reading.series.values()) == 3_600


def test_prometheus_reads_counters_histograms_and_gauges():
    metrics = Metrics()
    metrics.add(t.TASKS_SUBMITTED, 2, 'a "b"\n\\')
    metrics.record(t.COMMIT_DURATION, [0.02])
    metrics.record(t.COMMIT_DURATION, [99])
    metrics.set(t.QUEUE_AGE, {("timers",): 1.5})
    lines = text_of(metrics).splitlines()
    assert r'headway_tasks_submitted_total{headway_saga="a \"b\"\n\\"} 2' in lines
    assert 'headway_commit_duration_seconds_bucket{le="0.025"} 1' in lines
    assert 'headway_commit_duration_seconds_bucket{le="+Inf"} 2' in lines
    assert "headway_commit_duration_seconds_count 2" in lines
    assert 'headway_queue_age_seconds{headway_queue="timers"} 1.5' in lines
    assert "# TYPE headway_queue_age_seconds gauge" in lines


def test_what_prometheus_reads_is_what_its_own_parser_understands():
    parser = importlib.import_module("prometheus_client.parser")
    metrics = Metrics()
    for each in INSTRUMENTS.values():
        labels = ["x"] * len(each.attributes)
        if each.kind == "histogram":
            metrics.record(each.name, [1], *labels)
        elif each.kind == "counter":
            metrics.add(each.name, 1, *labels)
        else:
            metrics.set(each.name, {tuple(labels): 1})
    families = list(parser.text_string_to_metric_families(text_of(metrics)))
    assert len(families) == len(INSTRUMENTS)


@pytest.mark.parametrize("name", INSTRUMENTS)
def test_a_metric_describes_itself(name: str):
    each = INSTRUMENTS[name]
    assert each.description.endswith(".")
    assert name.startswith("headway.")
