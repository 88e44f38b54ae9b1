"""Imports point one way: between the top folders, between the models' packages, and in no circle."""

from __future__ import annotations

import ast
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TOP = ("agents", "models", "pipelines", "followers", "demo", "bench")

#: What each top folder may import of the others.
ALLOWED = {
    "models": set[str](),
    "pipelines": {"models"},
    "followers": {"models", "pipelines"},
    "agents": {"models", "pipelines", "followers"},
    "demo": {"models", "pipelines", "followers", "agents"},
    "bench": {"models", "pipelines", "followers", "agents", "demo"},
}
#: The commands of those that are in no wheel, which the command line names.
CHECKOUT_COMMANDS = {("agents.main", "demo.command"), ("agents.main", "bench.main")}

#: The models' packages from the lowest up: each imports only what stands before it.
MODELS = (
    "errors",
    "offsets",
    "faults",
    "clocks",
    "durations",
    "verdicts",
    "ids",
    "wire",
    "parameters",
    "records",
    "polls",
    "groups",
    "watching",
    "histories",
    "commits",
    "transactions",
    "lag",
    "rebalances",
    "recent",
    "assignment",
    "assignors",
    "connect",
    "partition_assignor",
    "security",
    "election",
    "simulation",
    "tasks",
    "decisions.inputs",
    "decisions.exact",
    "learning",
    "decisions",
    "copies",
    "replay",
    "pipeline_progress",
    "reading",
    "sharing",
    "reassignments",
    "connect_clusters",
    "spark_queries",
    "state",
    "what_if",
    "why",
    "shown",
)


@cache
def modules() -> dict[str, Path]:
    """Name every module of the top folders, without ``caughtup``, and its file."""
    files = (file for top in TOP for file in (ROOT / top).rglob("*.py"))
    return {".".join(_parts(file)): file for file in files}


def _parts(file: Path) -> tuple[str, ...]:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


@cache
def imports(module: str) -> frozenset[str]:
    """Name the modules of ours that a module imports, anywhere in it, or names as ``module:name``."""
    found = set[str]()
    for node in ast.walk(ast.parse(modules()[module].read_text())):
        if isinstance(node, ast.Import):
            found.update(a.name.removeprefix("caughtup.") for a in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            named, colon, name = node.value.removeprefix("caughtup.").partition(":")
            if colon and name.isidentifier():
                found.add(named)
        elif isinstance(node, ast.ImportFrom) and node.module:
            origin = node.module.removeprefix("caughtup").removeprefix(".")
            for alias in node.names:
                inner = f"{origin}.{alias.name}".lstrip(".")
                found.add(inner if inner in modules() else origin)
    return frozenset(found & modules().keys())


def folder(module: str) -> str:
    """Name the folder a module is in; one right in a top folder stands for itself."""
    parts = module.split(".")
    return (
        module if len(parts) < 3 or modules()[module].stem == "__init__" else ".".join(parts[:-1])
    )


def test_top_folders_import_what_they_may() -> None:
    crossing = {
        (module, found)
        for module in modules()
        for found in imports(module)
        if found.split(".")[0] not in ALLOWED[(top := module.split(".")[0])] | {top}
    }
    assert crossing == CHECKOUT_COMMANDS


def test_of_the_demo_only_its_command_imports_the_command_line() -> None:
    crossing = {m for m in modules() for f in imports(m) if m[:5] == "demo." and f[:7] == "agents."}
    assert crossing == {"demo.command"}


def test_commands_that_are_named_are_imports_too() -> None:
    assert "agents.cli.run" in imports("agents.main")
    assert "bench.loop.command" in imports("bench.main")


def test_folders_import_each_other_in_no_circle() -> None:
    graph: dict[str, set[str]] = {}
    for module in modules():
        used = {folder(found) for found in imports(module)}
        graph.setdefault(folder(module), set()).update(used - {folder(module)})
    try:
        tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(" -> ".join(reversed(error.args[1])))


def test_modules_import_each_other_in_no_circle() -> None:
    try:
        tuple(TopologicalSorter({m: imports(m) - {m} for m in modules()}).static_order())
    except CycleError as error:
        pytest.fail(" -> ".join(reversed(error.args[1])))


def package(module: str) -> str:
    """Name the package of the models that has a place of its own, and this module in it."""
    _, first, *rest = module.split(".")
    inner = f"{first}.{rest[0]}" if rest else first
    return inner if inner in MODELS else first


def test_every_package_of_the_models_has_its_place() -> None:
    packages = {package(name) for name in modules() if name.startswith("models.")}
    assert packages == set(MODELS)


@pytest.mark.parametrize(("lower", "own"), [*pairwise(MODELS)])
def test_a_package_of_the_models_imports_only_those_before_it(lower: str, own: str) -> None:
    before = {*MODELS[: MODELS.index(lower) + 1], own}
    used = {
        (module, found)
        for module in modules()
        if module.startswith("models.") and package(module) == own
        for found in imports(module)
        if found.count(".") and package(found) not in before
    }
    assert used == set()
