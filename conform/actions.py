"""The actions that the kit asks an agent for, as agents/asyncapi.yaml describes them."""

from __future__ import annotations

ECHO = "conform-echo"
DOUBLE = "conform-double"
END = "conform-end"
LARGE = "conform-large"
WORK = "conform-work"
UNDO = "conform-undo"  # a compensation

ACTIONS = (ECHO, DOUBLE, END, LARGE, WORK, UNDO)
