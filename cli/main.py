"""The command `headway`: puts the groups of commands together, and turns errors into exits."""

from __future__ import annotations

import importlib.metadata
import platform
import sys

import typer
from headway.agents.loading import NotLoaded
from headway.cli import (
    agents,
    batch,
    conform,
    console,
    dead,
    demos,
    doctor,
    documents,
    drill,
    interventions,
    limits,
    logs,
    output,
    replay,
    sagas,
    servers,
    submissions,
    tasks,
    tokens,
    top,
    webhooks,
    whoami,
)
from headway.cli.failures import EXPECTED, MEANINGS, exit_code, told
from headway.cli.terminal import Terminal, command, shared_flags

PANEL = "Look at the system"
ENVIRONMENT = {
    "HEADWAY_NATS_URL": "where NATS is; all commands, agents and coordinators",
    "HEADWAY_POSTGRES_URL": "where PostgreSQL is; coordinator, doctor, tokens, agents grant …",
    "HEADWAY_DATA": "the directory of a `headway up`, instead of .headway",
    "HEADWAY_TOKEN": "who asks, once there are tokens: `headway tokens create`",
    "HEADWAY_CREDS": "files of credentials of agents: `headway agents grant`",
    "HEADWAY_PAYLOAD_KEYS": "for agents and people: ID:BASE64,… with 32 bytes each",
}
EPILOG = "\n\n".join(
    [
        "Exit status:",
        *(f"{code:>3}  {text}" for code, text in MEANINGS.items()),
        "Environment:",
        *(f"{name}  {text}" for name, text in ENVIRONMENT.items()),
    ]
)


def build() -> typer.Typer:
    """The whole command line."""
    app = typer.Typer(
        name="headway",
        help="Durable coordination for multi-agent systems. Standard output is data; "
        "standard error narrates.",
        epilog=EPILOG,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(shared_flags)
    for group in (
        *(
            servers,
            console,
            demos,
            submissions,
            tasks,
            interventions,
            batch,
            dead,
            logs,
            replay,
            top,
        ),
        *(documents, sagas, agents, limits, tokens, whoami, webhooks, doctor, drill, conform),
    ):
        group.add_to(app)
    command(app, PANEL, flags=("json",))(version)
    return app


def version(terminal: Terminal) -> None:
    """Show the version of Headway and of Python."""
    headway, python = importlib.metadata.version("headway"), platform.python_version()
    if terminal.as_json:
        output.write_json({"headway": headway, "python": python})
    else:
        output.data_console().print(f"headway {headway}, Python {python}")


def main() -> None:
    """Run one command; an expected error becomes a line on standard error and an exit code."""
    try:
        build()(prog_name="headway")
    except EXPECTED as error:
        output.complain(told(error))
        for line in error.lines if isinstance(error, NotLoaded) else ():
            output.narrate(line)
        sys.exit(exit_code(error))


if __name__ == "__main__":
    main()
