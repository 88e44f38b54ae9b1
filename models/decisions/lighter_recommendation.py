"""A recommendation without its heaviest parts, for one that is too large to be read.

What a follower reads always stays: who gets what, who had what, the configs, the next rebalance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

Record = Mapping[str, Any]


def lighter_recommendations(record: Record) -> Iterator[Record]:
    """Give a record as it is, then without one part more each time.

    ``left_out`` names the parts that are missing: without lags nobody can decide it again.
    """
    yield record
    left_out: list[str] = []
    for name, leave_out in _PARTS.items():
        left_out.append(name)
        record = {**leave_out(record), "left_out": [*left_out]}
        yield record


def _without_lags(record: Record) -> Record:
    clients = {p: {**c, "lags": {}} for p, c in record["inputs"]["scenario"]["clients"].items()}
    return _with_scenario(record, greatest_lags={}, clients=clients)


def _without_partitions(record: Record) -> Record:
    none: dict[str, list[Any]] = {"source_partitions": [], "changelog_partitions": []}
    tasks = {name: {**task, **none} for name, task in record["inputs"]["scenario"]["tasks"].items()}
    return _with_scenario(record, tasks=tasks)


def _without_end_offset_sums(record: Record) -> Record:
    return {**record, "inputs": {**record["inputs"], "end_offset_sums": {}, "unknown": []}}


def _without_reasons(record: Record) -> Record:
    return {**record, "movements": [{**one, "reason": ""} for one in record["movements"]]}


def _without_movements(record: Record) -> Record:
    return {**record, "movements": []}


def _with_scenario(record: Record, **parts: Any) -> Record:
    inputs = record["inputs"]
    return {**record, "inputs": {**inputs, "scenario": {**inputs["scenario"], **parts}}}


#: What can be left out, by the name that ``left_out`` has for it, the heaviest first.
_PARTS: Mapping[str, Callable[[Record], Record]] = {
    "inputs.scenario.lags": _without_lags,
    "inputs.scenario.partitions": _without_partitions,
    "inputs.end_offset_sums": _without_end_offset_sums,
    "movements.reason": _without_reasons,
    "movements": _without_movements,
}
