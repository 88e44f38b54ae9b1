"""Rebalances that contradict themselves or lack something are refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from caughtup.models.errors import ScenarioError
from caughtup.models.partition_assignor.member_assignment import parse_end_point
from tests.models.partition_assignor.building import member, rebalance
from tests.support.rebalance_parsing import parse_rebalance


def refused(**changes: Any) -> str:
    """Return why a rebalance is refused."""
    with pytest.raises(ScenarioError) as raised:
        parse_rebalance({**rebalance({"a": member(1)}), **changes})
    return str(raised.value)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"assignor": "own"}, "unsupported: assignor: 'own' is not among"),
        ({"members": {}}, "no_members: members: there must be at least one"),
        ({"leader": "1"}, "bad_field: leader: '1' is not a UUID"),
        ({"now_ms": -1}, "bad_field: now_ms: -1 is not from 0 to"),
        ({"partitions": {"in": 0}}, "bad_field: partitions.in: 0 is not from 1 to"),
        ({"new_topics": "x"}, "bad_field: new_topics: is not an array"),
        ({"config": {"x": 1}}, "unknown_config: config: 'x' is not known"),
        ({"replicas": {"in": []}}, "bad_field: replicas: 'in' is not a partition"),
        ({"end_offsets": {"c-x": 1}}, "bad_field: end_offsets: 'c-x' is not a partition"),
        ({"end_offsets": {"c-0": -1}}, "bad_field: end_offsets.c-0: -1 is not from 0"),
        ({"committed": {"c-0": "1"}}, "bad_field: committed.c-0: is not an integer"),
        ({"subtopologies": {"a": {}}}, "bad_field: subtopologies.a: is not a number"),
        ({"subtopologies": {"0": {}, "00": {}}}, "bad_field: subtopologies.00: is not a number"),
        (
            {"subtopologies": {"0": {"sources": ["in"]}, "1": {"repartition_sources": ["in"]}}},
            "bad_field: subtopologies.1: in is read by 0, too",
        ),
        ({"members": {"a": []}}, "bad_field: members.a: is not an object"),
        ({"members": {"a": {}}}, "missing_field: members.a.process: is missing"),
        ({"members": {"a": member(1, version=12)}}, "bad_field: members.a.version: 12 is not"),
        ({"members": {"a": member(1, rack=1)}}, "bad_field: members.a.rack: is not a string"),
        ({"members": {"a": member(1, tags={"z": 1})}}, "bad_field: members.a.tags.z: is not"),
        ({"members": {"a": member(1, end_point="h")}}, "bad_field: members.a.end_point: 'h' is"),
        ({"members": {"a": member(1) | {"owned": [[1, 1]]}}}, "bad_field: members.a.owned: [1, 1]"),
        ({"members": {"a": member(1, sums={"x": 1})}}, "bad_field: members.a.offset_sums: 'x' is"),
        (
            {"members": {"a": member(1, sums={"0_1": 1, "0_01": 1})}},
            "duplicate: members.a.offset_sums: 0_1 is given twice",
        ),
    ],
)
def test_what_does_not_fit_is_named(changes: dict[str, Any], why: str) -> None:
    assert refused(**changes).startswith(why)


@pytest.mark.parametrize("field", ["assignor", "now_ms", "leader", "partitions", "end_offsets"])
def test_what_is_missing_is_named(field: str) -> None:
    incomplete = rebalance({"a": member(1)})
    del incomplete[field]
    with pytest.raises(ScenarioError, match=f"missing_field: {field}: is missing"):
        parse_rebalance(incomplete)


def test_client_tags_are_known_of_members_that_can_tell_them() -> None:
    """Older subscriptions have no room for them."""
    members = {"a": member(1, tags={"z": "1"}), "b": member(2, tags={"z": "1"}, version=10)}
    a, b = parse_rebalance(rebalance(members)).members
    assert (a.tags, b.tags) == ({"z": "1"}, {})


@pytest.mark.parametrize(
    ("text", "end_point"),
    [
        ("", None),
        ("  ", None),
        ("host:80", ("host", 80)),
        ("http://host:80", ("host", 80)),
        ("[fe80::1%eth0]:80", ("fe80::1%eth0", 80)),
        ("my_host:80", ("host", 80)),
        (":80", ("", 80)),
    ],
)
def test_end_points_are_read_as_kafka_reads_them(
    text: str, end_point: tuple[str, int] | None
) -> None:
    assert parse_end_point(text) == end_point


@pytest.mark.parametrize("text", ["host", "host:", "host:port", "host:80/path", "host:2147483648"])
def test_end_points_that_kafka_refuses_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a host and a port"):
        parse_end_point(text)
