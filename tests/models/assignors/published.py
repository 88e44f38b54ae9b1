"""What the published jar's assignors decided, as it was written down."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from caughtup.models.assignment.scenario import parse_scenario
from caughtup.models.assignors.registry import decide

_DATA = Path(__file__).with_name("data")


def examples(name: str) -> list[dict[str, Any]]:
    """Read scenarios and what the jar decided of each."""
    lines = (_DATA / f"{name}.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def each_of(found: list[dict[str, Any]]) -> pytest.MarkDecorator:
    """Parametrize a test with its ``example``."""
    return pytest.mark.parametrize("example", found, ids=lambda one: one["decision"]["name"])


def assert_reproduced(example: dict[str, Any]) -> None:
    """Our decision is the jar's, which names no warm-ups."""
    decision = decide(parse_scenario(example["scenario"])).to_dict()
    for given_to in decision["clients"].values():
        assert set(given_to.pop("warmup")) <= set(given_to["standby"])
    assert {"name": example["decision"]["name"], **decision} == example["decision"]
