"""Hold the rounds that we decide against those of Connect's published workers."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from typing import Any

import pytest

from caughtup.models.connect.assign_line import EAGER, decide_rounds, decisions_json, parse_rounds
from caughtup.models.connect.decision import owned_after
from caughtup.models.connect.work import Names, written
from caughtup.models.ids import ConnectorTaskId
from caughtup.models.wire.connect_protocol import (
    NOTHING,
    ConnectorsAndTasks,
    decode_worker_assignment,
    decode_worker_state,
)
from tests.oracle.connect.shrinking import shrink_story
from tests.support.oracles import Oracle

Json = dict[str, Any]


def assert_same_rounds(oracle: Oracle, stories: Iterable[Json]) -> int:
    """Decide each story here and there: what workers start, stop, have and send is the same.

    Returns how many stories there were. One that is decided otherwise fails the test with its
    name, which has its seed, and with the least of it that still is.
    """
    count = 0
    for story in stories:
        ours, theirs = answers(oracle, story)
        if ours != theirs or "exception" in theirs:
            pytest.fail(_report(oracle, story), pytrace=False)
        count += 1
    return count


def answers(oracle: Oracle, story: Json) -> tuple[Json, Json]:
    """Return our rounds and Kafka's, or the exceptions in their places."""
    theirs = _theirs(oracle, story)
    try:
        ours = _ours(story)
    except Exception as raised:  # noqa: BLE001 (whatever is raised here is a difference)
        ours = {"exception": repr(raised)}
    return ours, theirs


def _report(oracle: Oracle, story: Json) -> str:
    def raised(one: Json) -> list[bool]:
        return ["exception" in answer for answer in answers(oracle, one)]

    how = raised(story)

    def fails_alike(smaller: Json) -> bool:
        ours, theirs = answers(oracle, smaller)
        return ours != theirs and raised(smaller) == how

    least = shrink_story(story, fails_alike)
    ours, theirs = map(json.dumps, answers(oracle, least))
    return (
        f"{story['name']} is decided otherwise; the least of it that is:\n{json.dumps(least)}\n"
        f"ours: {ours}\nKafka's: {theirs}"
    )


def _ours(story: Json) -> Json:
    read = parse_rounds(story)
    decisions = decide_rounds(read)
    rounds = decisions_json(read, decisions)["rounds"]
    for told, decision, one in zip(read.rounds, decisions, rounds, strict=True):
        for name, worker in one["workers"].items():
            owned = NOTHING if read.assignor == EAGER else told.round.workers[name]
            sent = owned_after(owned, decision.workers[name])
            worker["sends"] = [*sent.connectors, *map(str, sent.tasks)]
    return {"rounds": rounds}


def _theirs(oracle: Oracle, story: Json) -> Json:
    answer = oracle.ask(question(story))
    if "exception" in answer:
        return answer
    asked = question(story)["rounds"]
    return {"rounds": [_round(*pair) for pair in zip(asked, answer["rounds"], strict=True)]}


def question(story: Json) -> Json:
    """Write a story as the oracle reads it: connectors and tasks apart, with protocols."""
    names = Names([one["connectors"] for one in story["rounds"]])
    return {
        "max_delay_ms": story.get("config", {}).get("scheduled.rebalance.max.delay.ms", 300_000),
        "rounds": [
            {**one, "protocol": _protocol(story, one), "workers": _workers(names, one["workers"])}
            for one in story["rounds"]
        ],
    }


def _protocol(story: Json, one: Json) -> str:
    if story["assignor"] == EAGER:
        return "default"
    return ("sessioned", "compatible")[one["generation"] % 2]


def _workers(names: Names, workers: Json) -> Json:
    read = {name: names.read(worker["owned"], name) for name, worker in workers.items()}
    return {name: {"connectors": one.connectors, "tasks": one.tasks} for name, one in read.items()}


def _round(asked: Json, one: Json) -> Json:
    for name, worker in one["workers"].items():
        # An eager worker doesn't say what it had: it gave everything up before it joined.
        owned = NOTHING if asked["protocol"] == "default" else _read(asked["workers"][name])
        assert decode_worker_state(base64.b64decode(worker["joined"])).owned == owned
    workers = {name: _worker(worker) for name, worker in one["workers"].items()}
    return {"delay_ms": one["delay_ms"], "workers": workers}


def _worker(worker: Json) -> Json:
    """Return what the jar says of a worker, which is what ours reads of the bytes that it wrote."""
    assignment = decode_worker_assignment(base64.b64decode(worker["assignment"]))
    state = decode_worker_state(base64.b64decode(worker["subscription"]))
    assert assignment.assigned == _read(worker["assigned"])
    assert assignment.revoked == _read(worker["revoked"])
    assert state.owned == _read(worker["sends"])
    return {
        "assigned": written(assignment.assigned),
        "revoked": written(assignment.revoked),
        "after": written(state.owned),
        "sends": [*state.owned.connectors, *map(str, state.owned.tasks)],
    }


def _read(listed: Json) -> ConnectorsAndTasks:
    tasks = (ConnectorTaskId(*task) for task in listed["tasks"])
    return ConnectorsAndTasks(tuple(listed["connectors"]), tuple(tasks))
