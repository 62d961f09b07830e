"""agents/asyncapi.yaml: valid, of one piece with the models, and complete."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import yaml
from headway.agents import (
    entries,
    gates,
    heartbeats,
    journal,
    messages,
    payloads,
    plainjson,
    pull,
    repeats,
    reports,
)
from headway.agents.command_signing import is_signed, signed
from headway.agents.deadletters import Refused, letter
from headway.agents.identity import operation_id
from headway.agents.messages import decode_command, decode_event
from headway.conform import actions
from headway.coordinator.permissions import of_agent
from headway.demo.languages import nodejs
from jsonschema_rs import Draft7Validator
from languages.contract import DEMANDED, FILE, TOLD, offered, written

AGENT = "AGENT"
AGAIN = "the models changed: PYTHONPATH=tests .venv/bin/python -m languages.contract"


@pytest.fixture(scope="module")
def text() -> str:
    return FILE.read_text()


@pytest.fixture(scope="module")
def document(text: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(text)
    return loaded


def test_the_official_parser_finds_nothing_to_complain_of(tmp_path: Path) -> None:
    node, tool = nodejs.made(Path(__file__).parent / "asyncapi", "the AsyncAPI parser", tmp_path)
    command = [node, "validate.mjs", str(FILE)]
    ran = subprocess.run(command, cwd=tool, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert json.loads(ran.stdout)["channels"] > 40


def test_the_official_parser_would_complain(tmp_path: Path, text: str) -> None:
    node, tool = nodejs.made(Path(__file__).parent / "asyncapi", "the AsyncAPI parser", tmp_path)
    broken = tmp_path / "broken.yaml"
    broken.write_text(text.replace("    action: receive\n", "    action: hear\n", 1))
    command = [node, "validate.mjs", str(broken)]
    ran = subprocess.run(command, cwd=tool, capture_output=True, text=True, check=False)
    assert (ran.returncode, "action" in ran.stdout) == (1, True)


def test_what_is_made_from_the_models_is_as_the_models_are(text: str) -> None:
    assert written(text) == text, AGAIN


def test_each_operation_that_coordinators_offer_agents_is_in_it(document: dict[str, Any]) -> None:
    addresses = {channel["address"] for channel in document["channels"].values()}
    wanted = {f"hw.agents.{{agent}}.{name}" for name in offered().agents}
    assert wanted <= addresses
    assert TOLD.keys() == offered().agents.keys()
    assert offered().agents.keys() > DEMANDED


def test_an_agent_may_use_all_subjects_that_are_in_it(document: dict[str, Any]) -> None:
    may = of_agent(AGENT)
    rights = {"send": may.publish, "receive": may.subscribe}
    pulled = "hw.commands.AGENT.*.*.*"  # comes to an inbox
    for operation in document["operations"].values():
        subject = _pattern(_channel(document, operation)["address"])
        if subject != pulled:
            allowed = [right for right in rights[operation["action"]] if _covers(right, subject)]
            assert allowed, subject


def test_all_that_an_agent_may_use_is_in_it(document: dict[str, Any]) -> None:
    subjects = [_pattern(each["address"]) for each in document["channels"].values()]
    inbox_and_longer_acks = 3
    may = of_agent(AGENT)
    untold = [
        right
        for right in (*may.publish, *may.subscribe)
        if not any(_covers(right, subject) for subject in subjects if subject)
    ]
    assert len(untold) == inbox_and_longer_acks, untold
    assert all(right.startswith(("_INBOX_AGENT.", "$JS.ACK._.")) for right in untold)


def test_each_message_but_empty_ones_and_bytes_has_an_example(document: dict[str, Any]) -> None:
    without = {
        name
        for name, message in document["components"]["messages"].items()
        if not message.get("examples")
    }
    assert without == {"part", "empty"}


def test_each_example_fits_its_schema(document: dict[str, Any]) -> None:
    for name, example, schema in _examples(document):
        whole = {**schema, "components": document["components"]}
        found = Draft7Validator(whole, validate_formats=True)
        complaints = [f"{name}: {error.message}" for error in found.iter_errors(example)]
        assert complaints == []


def test_each_example_fits_its_model(document: dict[str, Any]) -> None:
    for name, example, schema in _examples(document):
        body = json.dumps(example).encode()
        match schema.get("$ref", "").rpartition("/")[2]:
            case "Command":
                decode_command(body)
            case "Event":
                assert decode_event(body).type == f"headway.attempt.{name}"
    for name, operation in offered().agents.items():
        operation.request.model_validate(TOLD[name].request)
        operation.reply.model_validate(TOLD[name].reply)


def test_a_dead_letter_of_the_sdk_fits_its_schema(document: dict[str, Any]) -> None:
    schema = document["components"]["messages"]["letter"]["payload"]
    for body in (b"{}", b"\xff"):
        made = json.loads(letter(Refused("HW_COMMANDS", "hw.commands.a.b.c.d", body, "junk")))
        Draft7Validator(schema).validate(made)


def test_its_examples_of_a_signature_and_of_an_operation_id_are_right(text: str) -> None:
    key = bytes(range(32))
    subject, body = "hw.commands.a.b.c.d", b'{"x":1}'
    example = signed(key, subject, body)
    assert is_signed(key, subject, example)
    assert f"`{example.decode()}`" in text
    task = UUID("01890a5d-ac96-774b-bcce-b302099a8057")
    assert f"`{operation_id(task, 'charge', 'action')}`" in text


def test_its_limits_and_words_are_those_of_the_code(document: dict[str, Any]) -> None:
    prose = document["info"]["description"]
    for number in (
        messages.INLINE_MAX_BYTES,
        messages.INPUT_MAX_BYTES,
        payloads.PART_BYTES,
        reports.MESSAGE_MAX_CHARS,
    ):
        assert f"{number:,}" in prose
    for words in (
        f"`ack_wait` is {pull.ACK_WAIT_S:g} s",
        f"stored it less than {repeats.OLD_COMMAND_S:g} s ago",
        f"within {repeats.STORED_WITHIN_MS // 1000} s of `sentms`",
        f"at most {plainjson.DEPTH_MAX} deep",
        f"Error code {payloads.SUBJECT_TAKEN}",
    ):
        assert words in prose
    assert f"up to {heartbeats.PROGRESS_MAX_BYTES // 1024} KiB" in FILE.read_text()
    for kind in (
        reports.INVALID_INPUT,
        reports.INVALID_RESULT,
        reports.RESULT_TOO_LARGE,
        reports.UNKNOWN_ACTION,
        reports.PAYLOAD_LOST,
        "Undecryptable",
    ):
        assert f"`{kind}`" in prose


def test_the_problem_types_of_its_requests_are_in_it(document: dict[str, Any]) -> None:
    prose = document["info"]["description"]
    of_journals = (
        *(entries.SUPERSEDED, entries.OUT_OF_ORDER, entries.TOOL_NOT_ALLOWED),
        *(entries.BUDGET_SPENT, entries.LOOP_DETECTED, entries.TRIPPED),
    )
    for kind in {*of_journals, *gates.CODES} - {gates.DECIDED}:  # that one is for people
        assert f"`{kind}`" in prose, kind
    for kind, code in gates.CODES.items():
        [line] = [each for each in prose.splitlines() if f"`{kind}`" in each] or [""]
        assert kind == gates.DECIDED or f"| {code} |" in line, kind
    for kind in journal.GUARDS.values():
        assert f"`{kind}`" in prose, kind


def test_the_conformance_actions_are_in_it(document: dict[str, Any]) -> None:
    prose = document["info"]["description"]
    assert len(actions.ACTIONS) == 6
    assert all(f"| `{name}`" in prose for name in actions.ACTIONS)


def _examples(document: dict[str, Any]) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    for name, message in document["components"]["messages"].items():
        for example in message.get("examples", []):
            yield name, example["payload"], message["payload"]


def _channel(document: dict[str, Any], operation: dict[str, Any]) -> dict[str, Any]:
    name = operation["channel"]["$ref"].rpartition("/")[2]
    found: dict[str, Any] = document["channels"][name]
    return found


def _pattern(address: str | None) -> str:
    """A subject, with * for each parameter but the agent."""
    named = (address or "").replace("{agent}", AGENT)
    return re.sub(r"\{[^}]+\}", "*", named)


def _covers(right: str, subject: str) -> bool:
    mine, theirs = right.split("."), subject.split(".")
    if mine[-1] == ">":
        return len(theirs) >= len(mine) and _fits(mine[:-1], theirs[: len(mine) - 1])
    return len(mine) == len(theirs) and _fits(mine, theirs)


def _fits(mine: list[str], theirs: list[str]) -> bool:
    return all(one in ("*", other) for one, other in zip(mine, theirs, strict=True))
