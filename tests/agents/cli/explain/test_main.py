"""What ``caughtup explain`` prints, and its JSON."""

from __future__ import annotations

import io
import re

from rich.console import Console

from caughtup.agents.cli.explain.main import explanation, print_explanation
from caughtup.models.decisions.life import DecidedGeneration
from caughtup.models.parameters import ApplicationParameters
from caughtup.models.records.fields import json_values
from caughtup.models.state.cluster import ClusterState
from tests.support.decisions import decided_generation, decided_state
from tests.support.groups.records import GROUP
from tests.support.groups.streams import WARMING, Member, process


def decided(*members: Member) -> tuple[ClusterState, DecidedGeneration]:
    state = decided_state(*members)
    return state, decided_generation(state)


def printed(*tasks: str, members: tuple[Member, ...] = WARMING) -> str:
    state, known = decided(*members)
    console = Console(markup=False, file=io.StringIO(), record=True, width=200)
    print_explanation(console, known, state.task_rows(GROUP), tasks)
    return re.sub(r"\s+", " ", console.export_text())


def test_it_tells_what_was_decided_and_why_and_what_both_plans_cost() -> None:
    text = printed()
    assert "orders, generation 7" in text
    assert "The leader decided exactly what HighAvailabilityTaskAssignor decides." in text
    assert "What the leader planned" in text
    assert "warm-up 1 of 2" in text
    assert "What caughtup recommends" in text
    assert "copies of state built │ 1 │ 1" in text
    assert "offsets restored │ 50,000 │ 50,000" in text
    assert "time at one probing interval each │ 10 min │ 10 min" in text
    assert "A probing rebalance is needed: 1 warm-up has to be checked again." in text


def test_of_one_task_it_tells_who_has_what_and_what_is_to_become_of_it() -> None:
    text = printed("0_1")
    assert "Task 0_1" in text
    assert "a │ active │ runs it already │ │ running" in text
    assert "b │ warmup │ lags 50,000 offsets │ 50,000 │ reported" in text
    assert "The leader: warmup, from a to b" in text
    assert "caughtup leaves it where it is." in text


def test_a_task_that_stays_is_said_to() -> None:
    text = printed("0_0")
    assert "The leader leaves it where it is. caughtup: warmup, from a to b" in text


def test_the_object_has_the_leaders_decision_its_movements_and_the_record() -> None:
    _, known = decided(*WARMING)
    line = json_values(explanation(known))
    assert (line["group"], line["generation"]) == (GROUP, 7)
    assert line["leader_decision"][str(process(2))] == {"active": [], "standby": ["0_1"]}
    assert line["exact"]["result"] == "match"
    assert [movement["task"] for movement in line["leader_movements"]] == ["0_1"]
    assert known.recommendation is not None
    assert line["recommendation"] == json_values(known.recommendation)


def test_each_config_is_there_with_how_it_is_known() -> None:
    alone = "Known from this generation alone; a running service learns from every generation."
    assert "num.standby.replicas │ 0 │ told" in printed()
    state = decided_state(*WARMING, parameters=ApplicationParameters())
    known = decided_generation(state)
    console = Console(markup=False, file=io.StringIO(), record=True, width=200)
    print_explanation(console, known, [], ())
    text = re.sub(r"\s+", " ", console.export_text())
    assert "acceptable.recovery.lag │ 0 to 49999 │ learned from 1 generation" in text
    assert "max.warmup.replicas │ 1 or more │ assumed" in text
    assert alone in text
    (lag,) = [one for one in explanation(known).configs if one.values == "0 to 49999"]
    assert lag.provenance == "learned"
