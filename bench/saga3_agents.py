"""The agents of `saga3.py`: three of them, served by one process."""

from __future__ import annotations

from typing import Any

from headway.agents import Agent, Context, Reject

RESULT = {"text": "x" * 180}  # about 200 bytes a result

first, second, third = Agent("first"), Agent("second"), Agent("third")


@first.action("do")
async def do_first(ctx: Context, order: dict[str, Any]) -> dict[str, str]:
    return RESULT


@first.compensation("undo")
async def undo_first(ctx: Context) -> None:
    return None


@second.action("do")
async def do_second(ctx: Context, order: dict[str, Any]) -> dict[str, str]:
    return RESULT


@second.compensation("undo")
async def undo_second(ctx: Context) -> None:
    return None


@third.action("do")
async def do_third(ctx: Context, order: dict[str, Any]) -> dict[str, str]:
    return RESULT


@third.action("refuse")
async def refuse_third(ctx: Context, order: dict[str, Any]) -> None:
    raise Reject("as asked")


@third.compensation("undo")
async def undo_third(ctx: Context) -> None:
    return None
