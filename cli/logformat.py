"""What a process that runs something writes on standard error: words for people, or JSON lines.

Payloads are in neither.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

import orjson
from headway.agents import telemetry as t

WORDS = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_OF_ATTEMPTS = ("task", "step", "phase", "attempt")  # what `ctx.logger` adds


class JsonLines(logging.Formatter):
    """One JSON object a line. The records of changes of state are that already."""

    def format(self, record: logging.LogRecord) -> str:
        if record.name == t.RECORDS_LOGGER:
            return record.getMessage()
        line: dict[str, object] = {
            "at": round(record.created * 1000),
            "severity": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        for name in _OF_ATTEMPTS:
            if hasattr(record, name):
                line[f"headway.{name}"] = getattr(record, name)
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return orjson.dumps(line, default=str).decode()


def log_to_standard_error(environ: Mapping[str, str]) -> None:
    """As HEADWAY_LOG_FORMAT says: `json`, or words."""
    handler = logging.StreamHandler()
    as_json = environ.get(t.LOG_FORMAT, "").lower() == t.JSON
    handler.setFormatter(JsonLines() if as_json else logging.Formatter(WORDS))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
