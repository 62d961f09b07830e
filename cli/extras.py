"""Parts that need more than the base install, and are loaded only by the commands that use them.

So `pip install headway` gives an agent or a client no database driver, and `headway status` does
not wait for one to be imported.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from headway.cli.failures import MissingExtra


def load(module: str, command: str) -> ModuleType:
    """The module that does the work of `command`; MissingExtra says what to install."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("headway"):
            raise
        raise MissingExtra(
            f"`headway {command}` needs {error.name}, which is not installed here: "
            "pip install 'headway[all]'"
        ) from None
