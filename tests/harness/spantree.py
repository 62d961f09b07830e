"""The spans of one trace as a tree of text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from harness.collector import Taken

SHOWN = ("headway.outcome", "headway.status", "gen_ai.usage.output_tokens", "error.type")


def tree(spans: Sequence[Taken]) -> str:
    """One line a span: its name, when it began and how long it took, and what became of it."""
    children: dict[bytes, list[Taken]] = defaultdict(list)
    for each in sorted(spans, key=lambda each: each.span.start_time_unix_nano):
        children[each.span.parent_span_id].append(each)
    [root] = children[b""]
    zero = root.span.start_time_unix_nano

    def lines(each: Taken, lead: str, stem: str) -> Iterator[str]:
        yield f"{lead}{_line(each, zero)}"
        below = children[each.span.span_id]
        events = [_event(event, zero) for event in each.span.events]
        for place, event in enumerate(events):
            last = place == len(events) - 1 and not below
            yield f"{stem}{'└' if last else '├'}╴{event}"
        for child in below:
            last = child is below[-1]
            yield from lines(
                child, f"{stem}{'└' if last else '├'}─ ", f"{stem}{' ' if last else '│'}  "
            )

    return "\n".join(lines(root, "", ""))


def _line(each: Taken, zero: int) -> str:
    span, told = each.span, each.attributes
    began, took = (
        _ms(span.start_time_unix_nano - zero),
        _ms(span.end_time_unix_nano - span.start_time_unix_nano),
    )
    words = [str(told[name]) for name in SHOWN if name in told]
    links = [link.attributes[0].value.string_value for link in span.links]
    linked = f" → {', '.join(links)}" if links else ""
    return f"{span.name}  +{began} {took}  {' '.join(words)}{linked}"


def _event(event: object, zero: int) -> str:
    told = {each.key: each.value for each in event.attributes}  # type: ignore[attr-defined]
    by = told.get("headway.worker")
    who = f" by {by.string_value.rsplit('-', 1)[-1]}" if by and by.string_value else ""
    return f"{event.name}{who}  +{_ms(event.time_unix_nano - zero)}"  # type: ignore[attr-defined]


def _ms(ns: int) -> str:
    return f"{ns / 1e6:.0f} ms"
