"""``caughtup bench replay`` on a fleet of a few groups."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from caughtup.agents.cli import main


def test_every_group_is_decided_under_every_setting() -> None:
    arguments = ["bench", "replay", "--groups", "5", "--makes", "3", "--threads", "1"]
    result = CliRunner().invoke(main, [*arguments, "--format", "json"])
    assert result.exit_code == 0, result.output
    (figures,) = map(json.loads, result.stdout.splitlines())
    assert (figures["threads"], figures["groups"], figures["settings"]) == (1, 5, 4)
    assert figures["generations"] == 5 * 2
    assert figures["decisions"] == figures["generations"] * figures["settings"]
    assert figures["groups_per_second"] == pytest.approx(5 / figures["seconds"])
    assert figures["cpu_seconds"] > 0
