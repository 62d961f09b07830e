"""Of a saga that is not there: which are, the nearest first."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from headway.agents.catalogue_views import SagaView
from headway.agents.client import Client
from headway.agents.errors import HeadwayError, NotFound

NEAR = 0.6  # of 1: so alike are two names of which one was mistyped
NAMES_SHOWN_MAX = 10

_UNKNOWN = re.compile(r"there is no saga '([^']+)'")


async def note_sagas(client: Client, error: NotFound) -> None:
    """Note on an error about a saga which there are, if that can be asked."""
    unknown = _UNKNOWN.match(str(error))
    if unknown is None:
        return
    try:
        sagas = (await client.sagas()).sagas
    except HeadwayError:  # what was asked for is not there, whoever may see the rest
        return
    if sagas:
        error.add_note(suggestion(unknown[1], sagas))


def suggestion(wanted: str, sagas: Sequence[SagaView]) -> str:
    """Which versions there are of the saga `wanted`; or which sagas, the nearest first."""
    versions = sorted(each.version for each in sagas if each.name == wanted)
    if versions:
        return f"its versions are: {', '.join(map(str, versions))}"
    alike = {each.name: SequenceMatcher(None, wanted, each.name).ratio() for each in sagas}
    names = sorted(alike, key=lambda name: (-alike[name], name))
    shown = ", ".join(names[:NAMES_SHOWN_MAX])
    more = len(names) - NAMES_SHOWN_MAX
    there = f"there are: {shown}{f' and {more} more' if more > 0 else ''}"
    return f"did you mean {names[0]!r}? {there}" if alike[names[0]] >= NEAR else there
