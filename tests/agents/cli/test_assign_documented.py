"""`caughtup assign` as docs/integrating.md has it: the example, and every field and name."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from caughtup.agents.cli.assign import assign
from caughtup.models.assignment.configs import read_configs
from caughtup.models.assignors.consumer.assign_line import CONSUMER_ASSIGNORS, STREAMS_STICKY
from caughtup.models.assignors.registry import ASSIGNORS
from caughtup.models.connect.assign_line import CONNECT_ASSIGNORS
from tests.support.documented import INTEGRATING, blocks
from tests.support.own_topics.records import service_records


def scenario() -> dict[str, Any]:
    """Return the scenario of the page's example."""
    (line,) = (one for one in blocks("sh")[0].splitlines() if one.startswith("{"))
    found: dict[str, Any] = json.loads(line)
    return found


def test_the_example_gives_what_the_page_says_in_a_shell() -> None:
    directory = Path(sys.executable).parent
    done = subprocess.run(
        ["sh", "-c", blocks("sh")[0]],
        env={**os.environ, "PATH": f"{directory}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == blocks("json")[0]


@pytest.mark.parametrize("example", [1, 3])
def test_groups_of_consumers_and_of_streams_are_decided_as_the_page_says(example: int) -> None:
    line, answer = blocks("json")[example : example + 2]
    ran = CliRunner().invoke(assign, input=line)
    assert ran.output.strip() == answer.strip()


def test_a_recommendation_s_scenario_is_decided_again_under_another_config() -> None:
    """The page's pipe, with a record's value in place of the console consumer."""
    (own,) = (own for own in service_records() if own.topic == "recommended-assignments")
    pipe = " ".join(blocks("sh")[1].split())
    (changing,) = re.findall(r"\| (jq -c '[^']+') \| caughtup assign$", pipe)
    if shutil.which("jq"):
        done = subprocess.run(
            ["sh", "-c", changing], input=own.encoded, capture_output=True, check=True, timeout=60
        )
        line = done.stdout
    else:
        found = own.value["inputs"]["scenario"]
        line = json.dumps(
            {**found, "config": {**found["config"], "max.warmup.replicas": 4}}
        ).encode()
    assert json.loads(line)["config"]["max.warmup.replicas"] == 4
    ran = CliRunner().invoke(assign, input=line)
    assert ran.exit_code == 0, ran.output
    assert set(json.loads(ran.output)["clients"]) == set(own.value["process_ids"])


def test_the_page_names_every_assignor_and_every_config() -> None:
    text = INTEGRATING.read_text()
    for name in (*ASSIGNORS, *CONNECT_ASSIGNORS, *CONSUMER_ASSIGNORS, STREAMS_STICKY):
        assert f"`{name}`" in text, name
    line = next(line for line in text.splitlines() if line.startswith("| `config`"))
    named = re.findall(r"`([a-z_.]+)`", line)[1:]
    configs = [f"rack.aware.assignment{name}" if name[0] == "." else name for name in named]
    assert len(configs) == len(set(configs)) == 8
    values = {"rack.aware.assignment.tags": ["zone"], "rack.aware.assignment.strategy": "none"}
    read_configs({name: values.get(name, 60_000) for name in configs})


def test_each_field_that_the_page_calls_required_is() -> None:
    def refusal(changed: dict[str, Any]) -> str:
        ran = CliRunner().invoke(assign, input=json.dumps(changed))
        return str(json.loads(ran.output).get("error", {}).get("code"))

    rows = re.findall(r"^\| (…)? ?`(\w+)`.*?\| (yes)? ?\|", INTEGRATING.read_text(), re.MULTILINE)
    required = {name: bool(yes) for _, name, yes in rows}
    for name in ("assignor", "tasks", "clients", "config", "name"):
        changed = scenario()
        del changed[name]
        assert (refusal(changed) == "missing_field") == required[name], name
    for name in ("capacity", "previous_active", "lags"):
        changed = scenario()
        del next(iter(changed["clients"].values()))[name]
        assert (refusal(changed) == "missing_field") == required[name], name
