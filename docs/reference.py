"""Writes docs/api: the reference of what programs may use, from signatures and docstrings.

    .venv/bin/python docs/reference.py

A test compares it with what is committed, so that it is never behind.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import griffe

HERE = Path(__file__).parent
ROOT = HERE.parent
PAGES = {
    "agents": "headway.agents",
    "testing": "headway.agents.testing",
    "fence": "headway.agents.fence",
    "gates": "headway.agents.gates",
    "models": "headway.agents.views",
    "sagas": "headway.sagas",
}
PACKAGES = ("agents", "sagas")


def pages() -> dict[str, str]:
    """The reference as Markdown, by the name of its file."""
    with tempfile.TemporaryDirectory() as folder:
        for package in PACKAGES:
            link = Path(folder) / "headway" / package
            link.parent.mkdir(exist_ok=True)
            link.symlink_to(ROOT / package)
        loader = griffe.GriffeLoader(search_paths=[folder])
        written = {
            f"{name}.md": _page(loader.load(module), module) for name, module in PAGES.items()
        }
    return {"README.md": _contents(written), **written}


def _page(module: griffe.Object | griffe.Alias, path: str) -> str:
    parts = [f"# `{path}`", _words(module)]
    for name in _public(module):
        parts += _entry(name, module.members[name])
    return "\n\n".join(part for part in parts if part) + "\n"


def _public(module: griffe.Object | griffe.Alias) -> list[str]:
    """What a module exports or, if it does not say, its own public classes and functions."""
    if module.exports is not None:
        return [str(name) for name in module.exports]
    return [
        name
        for name, member in module.members.items()
        if not member.is_alias and member.is_public and (member.is_class or member.is_function)
    ]


def _entry(name: str, member: griffe.Object | griffe.Alias) -> Iterator[str]:
    found = member.final_target if isinstance(member, griffe.Alias) else member
    if isinstance(found, griffe.Class):
        yield f"## class `{name}`"
        yield _code(_made(name, found))
        yield _words(found)
        for part in _parts_of(found):
            yield from _part(part)
    elif isinstance(found, griffe.Function):
        yield f"## `{name}()`"
        yield _code(_called(found))
        yield _words(found)
    else:
        yield f"## `{name}`"
        yield _words(found)


def _parts_of(found: griffe.Class) -> Iterator[griffe.Function | griffe.Attribute]:
    """Its own and what it has of ours by inheritance."""
    for name, member in {**found.inherited_members, **found.members}.items():
        part = member.final_target if isinstance(member, griffe.Alias) else member
        if name.startswith("_") or not part.has_docstring:
            continue
        if isinstance(part, griffe.Function | griffe.Attribute):
            yield part


def _part(part: griffe.Function | griffe.Attribute) -> Iterator[str]:
    if isinstance(part, griffe.Function):
        yield f"### `{part.name}()`"
        yield _code(_called(part))
    else:
        yield f"### `{part.name}`"
        if part.annotation is not None:
            yield _code(f"{part.name}: {part.annotation}")
    yield _words(part)


def _made(name: str, found: griffe.Class) -> str:
    """How one is made, or what its fields are."""
    made = found.members.get("__init__")
    if isinstance(made, griffe.Function):
        return _called(made).replace("__init__", name, 1).removesuffix(" -> None")
    fields = [
        f"    {field.name}: {field.annotation}{'' if field.value is None else f' = {field.value}'}"
        for field in found.members.values()
        if isinstance(field, griffe.Attribute) and field.annotation and field.is_public
        if "property" not in field.labels
    ]
    bases = ", ".join(str(base) for base in found.bases if not str(base).startswith("_"))
    return "\n".join([f"class {name}({bases}):" if bases else f"class {name}:", *fields])


def _called(function: griffe.Function) -> str:
    """The signature; one parameter a line if it is long."""
    line = function.signature()
    if "coroutine" in function.labels or "async" in function.labels:
        line = f"async {line}"
    if len(line) <= 88:
        return line
    head, _, rest = line.partition("(")
    inside, _, end = rest.rpartition(")")
    return f"{head}(\n    " + ",\n    ".join(_split(inside)) + f",\n){end}"


def _split(parameters: str) -> list[str]:
    """At the commas that are in no brackets."""
    parts, depth, begun = [], 0, 0
    for at, character in enumerate(parameters):
        depth += (character in "([{") - (character in ")]}")
        if character == "," and not depth:
            parts.append(parameters[begun:at].strip())
            begun = at + 1
    return [*parts, parameters[begun:].strip()]


def _code(text: str) -> str:
    return f"```python\n{text}\n```"


def _words(found: griffe.Object | griffe.Alias) -> str:
    return found.docstring.value if found.docstring else ""


def _contents(written: dict[str, str]) -> str:
    lines = ["# API reference", ""]
    for name, text in written.items():
        title, _, rest = text.partition("\n\n")
        first = rest.partition("\n\n")[0].replace("\n", " ")
        lines.append(f"- [{title.removeprefix('# ')}]({name}): {first}")
    lines += ["", "Written by `docs/reference.py`, from signatures and docstrings."]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    for file, text in pages().items():
        (HERE / "api" / file).write_text(text, "utf-8")
