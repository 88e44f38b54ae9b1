"""``caughtup bench replay`` on a fleet of a few groups."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from caughtup.agents.main import main
from caughtup.bench.replay.command import replay_table

pytestmark = pytest.mark.xdist_group("spark")


@pytest.mark.thorough
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
    assert figures["checked"] == figures["identical"] == figures["decisions"]


def test_the_table_says_how_many_decisions_are_not_what_assign_says() -> None:
    figures = {
        "threads": 1,
        "groups": 5,
        "settings": 4,
        "seconds": 2.0,
        "cpu_seconds": 2.0,
        "groups_per_second": 2.5,
        "decisions": 40,
        "load": 0.5,
        "checked": 40,
        "identical": 39,
    }
    caption = replay_table([figures]).caption
    assert "39 of 40 sampled decisions" in str(caption)
