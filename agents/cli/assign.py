"""``caughtup assign``: assignment decisions for scenarios in JSON lines, without Kafka."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from typing import BinaryIO

import click
import msgspec

from caughtup.agents.cli.commands import examples
from caughtup.agents.cli.strict_json import decode, nested_too_deeply
from caughtup.models.assignment.scenario import parse_scenario
from caughtup.models.assignors.consumer.assign_line import (
    CONSUMER_ASSIGNORS,
    STREAMS_STICKY,
    consumer_group_json,
    decide_streams_group,
    parse_consumer_group,
    parse_streams_group,
    streams_group_json,
)
from caughtup.models.assignors.registry import decide
from caughtup.models.connect.assign_line import (
    CONNECT_ASSIGNORS,
    decide_rounds,
    decisions_json,
    parse_rounds,
)
from caughtup.models.errors import CaughtupError

#: A scenario of 1,000 tasks on 1,000 clients is 20 MB.
LONGEST_LINE = 64 * 1024 * 1024
_PIECE = 1024 * 1024


@click.command(
    short_help="Decide assignments: scenarios in, decisions out.",
    epilog=examples("caughtup assign < scenarios.jsonl > decisions.jsonl"),
)
@click.option(
    "--time",
    "repeats",
    type=click.IntRange(min=1),
    metavar="N",
    help="Decide each scenario N times and add the milliseconds of each decision.",
)
def assign(repeats: int | None) -> None:
    """Decide assignments: scenarios as JSON lines in, decisions as JSON lines out.

    A scenario is of one of Kafka Streams' assignors, of a consumer group's, of the coordinator's for
    a streams group, or has the rounds of a Connect group. A scenario that cannot be decided gives an error on its line, as do an empty line and a line
    longer than 64 MiB; the command continues with the next line, and its exit status is then 1.
    """
    gc.freeze()  # imported modules stay: keeps garbage collections short
    failed = False
    out = click.get_binary_stream("stdout")
    for line in _lines(click.get_binary_stream("stdin")):
        answer = _too_long() if line is None else answer_line(line, repeats)
        failed |= "error" in answer
        out.write(msgspec.json.encode(answer) + b"\n")
        out.flush()
    if failed:
        raise SystemExit(1)


def answer_line(line: bytes, repeats: int | None) -> dict[str, object]:
    """Return the decision for one scenario, or its error; decide it ``repeats`` times if given."""
    name = None
    try:
        if not line.strip():
            raise CaughtupError("empty_line", "the line is empty")
        data, fault = decode(line)
        if isinstance(data, dict) and isinstance(data.get("name"), str):
            name = _printable(data["name"])
        if fault:
            raise fault
        decide_once = _decider(data)
        milliseconds = []
        for _ in range(repeats or 1):
            decision, nanoseconds = decide_once(data)
            milliseconds.append(nanoseconds / 1e6)
    except RecursionError:
        problem = nested_too_deeply()
    except CaughtupError as refused:
        problem = refused
    else:
        answer = {"name": name, **decision}
        return answer if repeats is None else {**answer, "ms": milliseconds}
    return _error(name, problem.code, problem.message)


def _decider(data: object) -> Callable[[object], tuple[Mapping[str, object], int]]:
    """Return what decides a line: its assignor says what kind of group it is."""
    if not isinstance(data, dict):
        return _decide_scenario
    assignor = data.get("assignor")
    if assignor in CONNECT_ASSIGNORS:
        return _decide_rounds
    if assignor == STREAMS_STICKY:
        return _decide_streams_group
    # Kafka Streams has a sticky task assignor, too, for scenarios of tasks.
    if isinstance(assignor, str) and assignor in CONSUMER_ASSIGNORS and "tasks" not in data:
        return _decide_consumer_group
    return _decide_scenario


def _decide_scenario(data: object) -> tuple[Mapping[str, object], int]:
    """Return a Kafka Streams scenario's decision as printed, and its duration in ns."""
    scenario = parse_scenario(data)
    start = time.perf_counter_ns()
    decision = decide(scenario)
    nanoseconds = time.perf_counter_ns() - start
    return decision.to_dict(), nanoseconds


def _decide_rounds(data: object) -> tuple[Mapping[str, object], int]:
    """Return the decisions of a Connect group's rounds as printed, and their duration in ns."""
    group = parse_rounds(data)
    start = time.perf_counter_ns()
    decisions = decide_rounds(group)
    nanoseconds = time.perf_counter_ns() - start
    return decisions_json(group, decisions), nanoseconds


def _decide_consumer_group(data: object) -> tuple[Mapping[str, object], int]:
    """Return a consumer group's decision as printed, and its duration in ns."""
    assign, group = parse_consumer_group(data)
    start = time.perf_counter_ns()
    decision = assign(group)
    nanoseconds = time.perf_counter_ns() - start
    return consumer_group_json(decision), nanoseconds


def _decide_streams_group(data: object) -> tuple[Mapping[str, object], int]:
    """Return a streams group's decision as printed, and its duration in ns."""
    group = parse_streams_group(data)
    start = time.perf_counter_ns()
    decision = decide_streams_group(group)
    nanoseconds = time.perf_counter_ns() - start
    return streams_group_json(decision), nanoseconds


def _error(name: str | None, code: str, message: str) -> dict[str, object]:
    return {"name": name, "error": {"code": code, "message": message}}


def _too_long() -> dict[str, object]:
    return _error(None, "line_too_long", f"the line is longer than {LONGEST_LINE:,} bytes")


def _printable(name: str) -> str | None:
    """Return the name if it can be encoded as UTF-8, else None."""
    return name if name.encode(errors="replace").decode() == name else None


def _lines(stream: BinaryIO) -> Iterator[bytes | None]:
    """Yield each line; None for a line that is too long, which is skipped in pieces."""
    while piece := stream.readline(_PIECE):
        pieces, length = [piece], len(piece)
        while not piece.endswith(b"\n") and (piece := stream.readline(_PIECE)):
            length += len(piece)
            if length <= LONGEST_LINE:
                pieces.append(piece)
            else:
                pieces.clear()
        yield b"".join(pieces) if length <= LONGEST_LINE else None
