"""A group from a file: a scenario of ``caughtup assign``, or a row of recorded generations."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from caughtup.agents.cli.strict_json import decode
from caughtup.models.assignment.compact import CompactScenario, read_compact
from caughtup.models.errors import CaughtupError
from caughtup.models.what_if.beginning import Speeds
from caughtup.models.what_if.setting import RecordedGroup

#: A file of so many bytes is read at most.
LARGEST_FILE = 256 * 1024 * 1024


def read_recorded_group(
    path: Path, name: str | None, restore: tuple[float, float] | None
) -> RecordedGroup:
    """Read the last scenario of a file, or of a group in it, ready to be played.

    A line has a scenario, or the row of a table of generations, whose ``scenario`` is one. A
    scenario is a group's if its name is that of the group, or the group and a generation
    (``orders/17``). Raises CaughtupError for a file without one, and where the line is at fault.
    """
    if path.stat().st_size > LARGEST_FILE:
        raise CaughtupError("too_large", f"{path} is larger than {LARGEST_FILE:,} bytes")
    found: dict[str, Any] | None = None
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        if not line.strip():
            continue
        for one in _scenarios(line, f"{path}, line {number}"):
            if name is None or name in _names(one):
                found = one
    if found is None:
        raise CaughtupError("no_scenario", f"{path} has no scenario{f' of {name}' if name else ''}")
    return RecordedGroup(_read(found), Speeds(restore, {}))


def _scenarios(line: bytes, place: str) -> Iterator[dict[str, Any]]:
    """Yield what a line has as a scenario, with the group's name in it if the line says that."""
    data, fault = decode(line)
    if fault:
        raise CaughtupError(fault.code, f"{place}: {fault.message}")
    if not isinstance(data, dict):
        raise CaughtupError("bad_scenario", f"{place}: is not an object")
    inner = data.get("scenario", data)
    if isinstance(inner, str):
        inner, fault = decode(inner.encode(errors="surrogatepass"))
        if fault:
            raise CaughtupError(fault.code, f"{place}, scenario: {fault.message}")
    if isinstance(inner, dict):
        yield inner


def _names(scenario: dict[str, Any]) -> set[str]:
    """Return the names that a scenario goes by: its own, and that without the generation."""
    name = scenario.get("name")
    if not isinstance(name, str):
        return set()
    group, slash, generation = name.rpartition("/")
    return {name, group} if slash and generation.isdigit() else {name}


def _read(scenario: dict[str, Any]) -> CompactScenario:
    read = read_compact(scenario)
    read.expanded()  # what an assignor would refuse is refused here
    return read
