"""The API reference is what the code says now, and says something of all that it exports."""

from __future__ import annotations

import importlib
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
REFERENCE = runpy.run_path(str(ROOT / "docs" / "reference.py"))


def test_the_reference_is_as_the_code_is():
    written = {file.name: file.read_text("utf-8") for file in (ROOT / "docs/api").glob("*.md")}
    assert written == REFERENCE["pages"](), "write it again: .venv/bin/python docs/reference.py"


@pytest.mark.parametrize("module", ["headway.agents", "headway.sagas"])
def test_all_that_is_exported_is_explained(module):
    exported = importlib.import_module(module)
    silent = [
        name
        for name in exported.__all__
        if callable(getattr(exported, name)) and not getattr(exported, name).__doc__
    ]
    assert silent == []
