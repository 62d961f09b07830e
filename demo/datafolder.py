"""Where a demo keeps its data and its log: in a directory of the user's, or in one that goes."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headway.agents.errors import InvalidInput


@contextmanager
def data_folder(keep: Path | None) -> Iterator[Path]:
    """`keep`, which must be new or empty, or a directory that is removed in the end.

    InvalidInput if there is something in it already.
    """
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="headway-demo-") as temporary:
            yield Path(temporary)
        return
    try:
        keep.mkdir(parents=True, exist_ok=True)
        taken = any(keep.iterdir())
    except OSError as error:
        raise InvalidInput(f"cannot keep data in {keep}: {error.strerror}") from error
    if taken:
        raise InvalidInput(f"{keep} is not empty; name a new directory")
    yield keep.absolute()


@contextmanager
def log_into(path: Path) -> Iterator[None]:
    """Keep warnings, which kills bring about in plenty, out of the narration."""
    handler = logging.FileHandler(path)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
        handler.close()
