"""Metrics as Prometheus reads them (text format 0.0.4). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate

from headway.coordinator.metrics import Distribution, Metrics, Reading

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_ESCAPED = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def text_of(metrics: Metrics) -> str:
    """The body of `/metrics`."""
    return "".join(f"{line}\n" for reading in metrics.read() for line in _lines(reading))


def label_of(attribute: str) -> str:
    """An attribute's name there."""
    return attribute.replace(".", "_")


def _lines(reading: Reading) -> Iterator[str]:
    each = reading.instrument
    yield f"# HELP {each.prometheus} {each.description}"
    yield f"# TYPE {each.prometheus} {each.kind}"
    for labels, value in reading.series.items():
        pairs = list(zip((label_of(name) for name in each.attributes), labels, strict=True))
        if isinstance(value, Distribution):
            yield from _buckets(each.prometheus, pairs, each.bounds, value)
        else:
            yield f"{each.prometheus}{_braces(pairs)} {value:.17g}"


def _buckets(
    name: str, pairs: list[tuple[str, str]], bounds: Iterable[float], value: Distribution
) -> Iterator[str]:
    limits = [*(f"{bound:g}" for bound in bounds), "+Inf"]
    for limit, count in zip(limits, accumulate(value.buckets), strict=True):
        yield f"{name}_bucket{_braces([*pairs, ('le', limit)])} {count}"
    yield f"{name}_sum{_braces(pairs)} {value.total:.17g}"
    yield f"{name}_count{_braces(pairs)} {value.count}"


def _braces(pairs: Iterable[tuple[str, str]]) -> str:
    inner = ",".join(f'{name}="{value.translate(_ESCAPED)}"' for name, value in pairs)
    return f"{{{inner}}}" if inner else ""
