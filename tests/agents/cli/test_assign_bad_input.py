"""``caughtup assign`` on lines that nobody should send: each is refused, and the next is served."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from caughtup.agents.cli import assign
from caughtup.agents.main import main
from caughtup.models.assignors.consumer.assign_line import CONSUMER_ASSIGNORS
from tests.models.assignors.building import client, described

ONE = "00000000-0000-0000-0000-000000000001"
TWO = "00000000-0000-0000-0000-000000000002"
SCENARIO = described(client(active=("0_0",)), client({"0_0": 7}), stateful=("0_0",))
GOOD = json.dumps(SCENARIO)
#: The longest line that is read is 64 MiB.
HUNDRED_MB = 100_000_000
#: ``caughtup assign``, which in the end says how much memory it had at most, in kB.
CAUGHTUP = """
import re, sys
from pathlib import Path
from caughtup.agents.main import main
from caughtup.models.assignors.consumer.assign_line import CONSUMER_ASSIGNORS
try:
    main(["assign"])
finally:
    peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]
    print(peak, file=sys.stderr)
"""
ROOT = Path(__file__).parents[3]


def instead(old: str, new: str) -> bytes:
    """Return the good line with one thing changed."""
    assert GOOD.count(old) == 1
    return GOOD.replace(old, new).encode("utf-8", "surrogateescape")


#: What is wrong → the line, the code of its error, and what the error names.
BAD = {
    "a task twice in one client's actives": (
        instead('["0_0"]', '["0_0", "0_0"]'),
        "duplicate",
        f"clients.{ONE}.previous_active: 0_0 is given twice",
    ),
    "a task twice among the tasks": (
        instead('"tasks": {', '"tasks": {"0_0": {"stateful": false}, '),
        "duplicate",
        "tasks.0_0: is given twice",
    ),
    "a task in two spellings": (
        instead('"tasks": {', '"tasks": {"0_00": {"stateful": false}, '),
        "duplicate",
        "tasks: 0_0 is given twice",
    ),
    "a client twice": (
        instead(f'"{TWO}": {{', f'"{ONE}": {{'),
        "duplicate",
        f"clients.{ONE}: is given twice",
    ),
    "a lag twice": (
        instead('{"0_0": 7}', '{"0_0": 7, "0_0": 8}'),
        "duplicate",
        f"clients.{TWO}.lags.0_0: is given twice",
    ),
    "a config twice": (
        instead('"config": {', '"config": {"num.standby.replicas": 1, '),
        "duplicate",
        "config.num.standby.replicas: is given twice",
    ),
    "a lag of a task that isn't there": (
        instead('{"0_0": 7}', '{"0_0": 7, "9_9": 7}'),
        "unknown_task",
        f"clients.{TWO}.lags: 9_9 is not among the tasks",
    ),
    "a lag missing": (
        instead('{"0_0": 7}', "{}"),
        "missing_field",
        f"clients.{TWO}.lags.0_0: is missing",
    ),
    "a lag of -1": (
        instead('{"0_0": 7}', '{"0_0": -1}'),
        "bad_field",
        f"clients.{TWO}.lags.0_0: is not an offset count, -2 or -3",
    ),
    "a lag of -4": (
        instead('{"0_0": 7}', '{"0_0": -4}'),
        "bad_field",
        f"clients.{TWO}.lags.0_0: is not an offset count, -2 or -3",
    ),
    "a lag of 2 to the 63rd": (
        instead('{"0_0": 7}', '{"0_0": 9223372036854775808}'),
        "bad_field",
        f"clients.{TWO}.lags.0_0: is not an offset count",
    ),
    "a lag of a million digits": (
        instead('{"0_0": 7}', '{"0_0": ' + "9" * 1_000_000 + "}"),
        "bad_json",
        f"clients.{TWO}.lags.0_0: a number of 1,000,000 digits is too long",
    ),
    "a lag of 1e999": (
        instead('{"0_0": 7}', '{"0_0": 1e999}'),
        "bad_field",
        f"clients.{TWO}.lags.0_0: is not an offset count",
    ),
    "a lag that is NaN": (
        instead('{"0_0": 7}', '{"0_0": NaN}'),
        "bad_json",
        f"clients.{TWO}.lags.0_0: NaN is not a number in JSON",
    ),
    "an infinite config": (
        instead('"acceptable.recovery.lag": 100', '"acceptable.recovery.lag": -Infinity'),
        "bad_json",
        "config.acceptable.recovery.lag: -Infinity is not a number in JSON",
    ),
    "no threads": (
        GOOD.replace('"capacity": 1', '"capacity": 0', 1).encode(),
        "bad_field",
        f"clients.{ONE}.capacity: 0 is not from 1 to",
    ),
    "fewer threads than none": (
        GOOD.replace('"capacity": 1', '"capacity": -1', 1).encode(),
        "bad_field",
        f"clients.{ONE}.capacity: -1 is not from 1 to",
    ),
    "more threads than Java's numbers go": (
        GOOD.replace('"capacity": 1', '"capacity": ' + "9" * 4_000, 1).encode(),
        "bad_field",
        f"clients.{ONE}.capacity: 99999999",
    ),
    "a task id without a partition": (
        instead('"tasks": {"0_0"', '"tasks": {"0"'),
        "bad_field",
        "tasks: '0' is not a task id such as 0_3",
    ),
    "a task id of a negative partition": (
        instead('["0_0"]', '["0_-1"]'),
        "bad_field",
        f"clients.{ONE}.previous_active: '0_-1' is not a task id such as 0_3",
    ),
    "a client that isn't a UUID": (
        instead(TWO, "pod-2"),
        "bad_field",
        "clients: 'pod-2' is not a UUID",
    ),
    "a UUID cut short": (
        instead(TWO, TWO[:-1]),
        "bad_field",
        f"clients: '{TWO[:-1]}' is not a UUID",
    ),
    "bytes that aren't UTF-8 in a value": (
        instead('"high_availability"', '"high\udcff"'),
        "bad_json",
        "assignor: has half a character (UTF-8)",
    ),
    "bytes that aren't UTF-8 in a key": (
        instead('"config": {', '"config": {"\udcff": 1, '),
        "bad_json",
        "config.\\udcff: has half a character (UTF-8)",
    ),
    "bytes that aren't UTF-8 anywhere": (b"\xff\xfe\x00", "bad_json", "the line is not UTF-8"),
    "half a surrogate pair": (
        instead('"assignor": "high', '"assignor": "\\udc00high'),
        "bad_json",
        "assignor: has half a character",
    ),
    "an empty line": (b"", "empty_line", "the line is empty"),
    "a blank line": (b" \t ", "empty_line", "the line is empty"),
    "a line cut short": (
        GOOD.encode()[:-1],
        "bad_json",
        f"the line is not JSON: Expecting ',' delimiter at character {len(GOOD) + 1:,}",
    ),
    "two scenarios on a line": (GOOD.encode() * 2, "bad_json", "Extra data at character"),
    "a nesting bomb": (b"[" * 1_000_000, "bad_json", "the line is nested too deeply"),
    "a nesting bomb in a field": (
        instead('["0_0"]', "[" * 100_000 + "]" * 100_000),
        "bad_json",
        "the line is nested too deeply",
    ),
    "a nesting bomb of objects": (b'{"tasks":' * 100_000, "bad_json", "nested too deeply"),
}


def answers(line: bytes) -> tuple[int, list[dict[str, Any]]]:
    """Serve a line between two good ones: the exit status and what was printed."""
    given = b"\n".join((GOOD.encode(), line, GOOD.encode(), b""))
    result = CliRunner().invoke(main, ["assign"], input=given)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, [json.loads(printed) for printed in result.output.splitlines()]


@pytest.mark.parametrize("case", BAD)
def test_the_line_is_refused_with_a_code_and_its_field_and_the_next_is_served(case: str) -> None:
    line, code, says = BAD[case]
    status, (before, refused, after) = answers(line)
    assert status == 1
    assert refused["error"]["code"] == code
    assert says in refused["error"]["message"]
    assert len(refused["error"]["message"]) < 300
    assert before == after
    assert before["clients"][ONE]["active"] == ["0_0"]


@pytest.mark.parametrize("depth", range(860, 1_010, 3))
def test_no_depth_of_nesting_is_too_deep_to_say_so(depth: int) -> None:
    """Not even one that can just be decoded, but not printed."""
    strategy = "[" * depth + "]" * depth
    line = instead('"config": {', '"config": {"rack.aware.assignment.strategy": ' + strategy + ", ")
    status, (_, refused, _) = answers(line)
    assert status == 1
    assert refused["error"]["code"] in {"bad_field", "bad_json"}


def test_what_kafkas_assignors_decide_is_decided_though_clients_contradict_each_other() -> None:
    """Two say that they ran a task, and one that it also stood by for it: no reason to refuse."""
    scenario = json.loads(GOOD)
    for one in (ONE, TWO):
        scenario["clients"][one] |= {"previous_active": ["0_0"], "previous_standby": ["0_0"]}
    status, (_, decision, _) = answers(json.dumps(scenario).encode())
    assert status == 0
    assert decision["clients"][ONE]["active"] == ["0_0"]


def test_a_refused_scenario_keeps_its_name_where_it_can_be_read() -> None:
    for case in ("a lag twice", "a lag that is NaN", "a lag of a million digits", "no threads"):
        _, (_, refused, _) = answers(BAD[case][0])
        assert refused["name"] == "test"
    _, (_, refused, _) = answers(instead('"test"', '"\\ud800"'))
    assert refused["name"] is None
    assert refused["error"]["message"].startswith("name: has half a character")


def test_the_length_of_a_line_is_limited_to_the_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = 3 * 1024 * 1024
    monkeypatch.setattr(assign, "LONGEST_LINE", limit)
    fits = GOOD.ljust(limit - 1).encode()
    status, printed = answers(fits)
    assert (status, printed[0]) == (0, printed[1])
    for excess in (1, 1024 * 1024, 5_000_000):
        status, (before, refused, after) = answers(fits + b" " * excess)
        assert (status, before) == (1, after)
        assert refused["error"] == {
            "code": "line_too_long",
            "message": "the line is longer than 3,145,728 bytes",
        }


def served(*pieces: bytes) -> tuple[int, list[dict[str, Any]], int]:
    """Run a process; return its exit status, what it printed, and its peak memory in bytes."""
    with subprocess.Popen(
        [sys.executable, "-c", CAUGHTUP],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        assert running.stderr is not None

        def feed(stream: Any) -> None:
            for piece in pieces:
                stream.write(piece)
            stream.close()

        feeder = threading.Thread(target=feed, args=(running.stdin,))
        feeder.start()
        printed = [json.loads(line) for line in running.stdout]
        feeder.join()
        peak = int(running.stderr.read()) * 1024
        return running.wait(timeout=60), printed, peak


def test_a_line_of_100_mb_is_passed_over_in_bounded_memory() -> None:
    good, piece = GOOD.encode() + b"\n", b"[" + b"0," * 500_000
    _, (decision,), alone = served(good)
    pieces = HUNDRED_MB // len(piece) + 1
    status, printed, peak = served(good, *[piece] * pieces, b"\n", good)
    print(f"peak memory {peak / 1e6:,.0f} MB, {alone / 1e6:,.0f} MB with a short line only")
    assert status == 1
    assert printed == [
        decision,
        {
            "name": None,
            "error": {
                "code": "line_too_long",
                "message": "the line is longer than 67,108,864 bytes",
            },
        },
        decision,
    ]
    assert peak < alone + HUNDRED_MB


def test_all_of_it_in_one_stream_gives_an_answer_a_line() -> None:
    lines = [part for line, _, _ in BAD.values() for part in (line, GOOD.encode())]
    status, printed, _ = served(b"\n".join(lines) + b"\n")
    assert status == 1
    assert [answer["error"]["code"] for answer in printed[::2]] == [
        code for _, code, _ in BAD.values()
    ]
    assert all(answer == printed[1] for answer in printed[1::2])


CONSUMERS = (
    '{"name": "test", "assignor": "sticky", "topics": {"t": {"partitions": 2}}, '
    '"members": {"m": {"topics": ["t"], "owned": [["t", 0]]}}}'
)
STREAMS = (
    '{"name": "test", "assignor": "streams_sticky", "subtopologies": '
    '{"0": {"tasks": 1, "stateful": true}}, "members": {"m": {"process_id": "p"}}}'
)


@pytest.mark.parametrize(
    ("line", "old", "new", "code", "named"),
    [
        (CONSUMERS, '["t", 0]', '["t", -1]', "bad_field", "members.m.owned: -1"),
        (CONSUMERS, '["t", 0]', '["t"]', "bad_field", "members.m.owned: a partition is"),
        (CONSUMERS, '["t", 0]', '["t", 0.5]', "bad_field", "members.m.owned: is not an integer"),
        (CONSUMERS, '["t"]', "7", "bad_field", "members.m.topics: is not an array"),
        (CONSUMERS, '"partitions": 2', '"partitions": 1000000000', "bad_field", "topics.t.part"),
        (
            CONSUMERS,
            '"partitions": 2',
            '"partitions": 2, "racks": []',
            "bad_field",
            "0 lists for 2",
        ),
        (
            CONSUMERS,
            '{"t": {',
            '{"u": {"partitions": 1000000}, "t": {',
            "bad_field",
            "topics: more",
        ),
        (CONSUMERS, '"m": {', '"m": {"generation": -1, ', "bad_field", "members.m.generation"),
        (CONSUMERS, '{"m": {"topics": ["t"], "owned": [["t", 0]]}}', "{}", "no_members", "members"),
        (
            CONSUMERS,
            '"topics": {"t": {"partitions": 2}}, ',
            "",
            "missing_field",
            "topics: is missing",
        ),
        (STREAMS, '"tasks": 1', '"tasks": 1000001', "bad_field", "subtopologies.0.tasks"),
        (STREAMS, '{"0": {', '{"00": {', "bad_field", "subtopologies.00"),
        (STREAMS, '{"0": {', '{"9999999999": {', "bad_field", "subtopologies.9999999999"),
        (STREAMS, '"p"', '"p", "active": ["0_1"]', "unknown_task", "members.m.active: 0_1"),
        (STREAMS, '"p"', '"p", "standby": ["x"]', "bad_field", "members.m.standby"),
        (STREAMS, '"members"', '"config": {"x": 1}, "members"', "unknown_config", "config: 'x'"),
        (STREAMS, "true", '"yes"', "bad_field", "subtopologies.0.stateful"),
    ],
)
def test_a_bad_line_of_a_group_names_what_is_wrong(
    line: str, old: str, new: str, code: str, named: str
) -> None:
    assert line.count(old) == 1
    ran = CliRunner().invoke(assign.assign, input=f"{line.replace(old, new)}\n{line}\n")
    refused, decided = map(json.loads, ran.output.splitlines())
    assert (ran.exit_code, refused["name"]) == (1, "test")
    assert refused["error"]["code"] == code
    assert named in refused["error"]["message"]
    assert set(decided["members"]) == {"m"}


def test_what_kafka_would_assign_twice_is_refused() -> None:
    topics = {"a": {"partitions": 3}, "b": {"partitions": 2}}
    members = {
        "m1": {"topics": ["a"], "owned": [["b", 7]]},
        "m2": {"topics": ["a", "b"], "owned": [["b", 9], ["b", 1]]},
    }
    line = json.dumps({"assignor": "sticky", "topics": topics, "members": members})
    ran = CliRunner().invoke(assign.assign, input=line)
    assert json.loads(ran.output)["error"]["code"] == "unsupported"


def hostile_line(seed: int, assignor: str) -> str:
    """Make a group of a seed: names of topics twice or of none, claims of anything, racks anywhere."""
    drawn = random.Random(seed)
    topics: dict[str, Any] = {}
    for name in drawn.sample(["a", "b", "c", "d", "\U0001f600"], drawn.randint(1, 5)):
        topics[name] = {"partitions": drawn.choice([0, 1, 2, 5])}
        if drawn.random() < 0.4:
            racks = [
                drawn.sample("xy", drawn.randint(0, 2)) for _ in range(topics[name]["partitions"])
            ]
            topics[name]["racks"] = racks
    members: dict[str, Any] = {}
    for number in range(drawn.randint(1, 6)):
        claims = [
            [drawn.choice("abcde"), drawn.choice([0, 1, 2, 9])] for _ in range(drawn.randint(0, 6))
        ]
        member: dict[str, Any] = {
            "topics": drawn.choices("abcde", k=drawn.randint(0, 5)),
            "owned": claims,
        }
        if drawn.random() < 0.5:
            member["generation"] = drawn.randint(0, 3)
        if drawn.random() < 0.5:
            member["rack"] = drawn.choice(["x", "y", "z", ""])
        if drawn.random() < 0.3:
            member["instance_id"] = drawn.choice("ijk")
        members[f"m{number}"] = member
    return json.dumps({"assignor": assignor, "topics": topics, "members": members})


@pytest.mark.parametrize("assignor", CONSUMER_ASSIGNORS)
def test_whatever_a_group_claims_there_is_a_decision_or_a_reason(assignor: str) -> None:
    for seed in range(300):
        answer = assign.answer_line(hostile_line(seed, assignor).encode(), None)
        decided = "members" in answer
        assert decided or answer["error"]["code"] in ("assignor_fails", "unsupported"), seed  # type: ignore[index]
