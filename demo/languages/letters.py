"""The agent of the travel demo that is written with the SDK."""

from __future__ import annotations

from headway.agents import Agent
from headway.demo.languages.conforming import conforming

letters = conforming(Agent("letters"))
