"""The rules that records of every own topic are read by, whatever the bytes."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from caughtup.models.clocks import AHEAD_MS
from caughtup.models.decisions.recommendation import read_recommendation
from caughtup.models.records import (
    application_states,
    catch_up_rates,
    end_offsets,
    learned_configs,
    movements,
    pipeline_progress,
    reassignments,
    recommendations,
    task_positions,
    transactions,
)
from caughtup.models.records.decoding import (
    MOST_DEEP,
    RecordFormat,
    RefusedError,
    is_too_deep,
    require_past,
)
from tests.models.wire.strategies import thorough
from tests.support.own_topics.records import PROCESS, SERVICE_RECORDS, WRITTEN_MS, ServiceRecord

FORMATS: dict[str, RecordFormat[Any]] = {
    "end offsets": end_offsets.FORMAT,
    "partition look": reassignments.FORMAT,
    "cluster look": reassignments.CLUSTER_FORMAT,
    "recommendation": recommendations.FORMAT,
    "learned configs": learned_configs.FORMAT,
    "task movement": movements.TASKS,
    "partition movement": movements.PARTITIONS,
    "transaction": transactions.FORMAT,
    "task position": task_positions.FORMAT,
    "application state": application_states.FORMAT,
    "catch-up rates": catch_up_rates.FORMAT,
    "pipeline progress": pipeline_progress.FORMAT,
}
every_record = pytest.mark.parametrize("own", SERVICE_RECORDS, ids=lambda own: own.name)


def refused(own: ServiceRecord, value: bytes, key: bytes | None = None) -> RefusedError:
    with pytest.raises(RefusedError) as caught:
        own.read(own.key if key is None else key, value)
    assert len(str(caught.value).splitlines()) == 1
    return caught.value


@every_record
def test_a_good_one_is_read_and_what_a_later_release_adds_is_passed_over(
    own: ServiceRecord,
) -> None:
    assert own.read(own.key, own.encoded)
    assert own.read(own.key, own.changed(later={"deep": [[[]]]})) is not None


@every_record
def test_what_is_read_can_be_written_and_read_again(own: ServiceRecord) -> None:
    form = FORMATS[own.name]
    record = form.decode(own.encoded)
    assert form.decode(form.encode(record)) == record
    told = json.loads(form.encode(record))
    assert {name: told[name] for name in own.value} == own.value


@every_record
@pytest.mark.parametrize("schema", [0, -1, 99, 2**63, 10**40])
def test_another_schema_is_refused_by_name(own: ServiceRecord, schema: int) -> None:
    error = refused(own, own.changed(schema=schema))
    assert error.code == "other_schema"
    assert "schema " in error.message
    alone = refused(own, json.dumps({"schema": schema}).encode())  # nothing else of it is known
    assert alone.code == "other_schema"


@every_record
def test_a_value_that_is_no_json_or_no_object_is_refused(own: ServiceRecord) -> None:
    for value in (b"", b"\xff\xfe", b"{]", own.encoded[:-1], own.encoded + b"x"):
        assert refused(own, value).code == "bad_json"
    for value in (b"[1]", b"7", b"null", b'"a"', b"true", b"{}", b'{"schema":"1"}'):
        assert refused(own, value).code == "bad_type"


@every_record
def test_a_value_larger_than_its_bound_is_refused_before_it_is_parsed(own: ServiceRecord) -> None:
    most = FORMATS[own.name].most_bytes
    padded = own.encoded + b" " * (most - len(own.encoded))
    assert own.read(own.key, padded)
    error = refused(own, b"\xff" * (most + 1))
    assert (error.code, error.message) == ("too_large", f"{most + 1:,} bytes, more than {most:,}")


@every_record
@pytest.mark.parametrize(
    "bomb", [b"[" * 10_000, b'{"a":' * 2_000, b"[[]," * 4_000], ids=["arrays", "objects", "ragged"]
)
def test_a_nesting_bomb_is_refused_before_it_is_parsed(own: ServiceRecord, bomb: bytes) -> None:
    assert refused(own, bomb).code == "too_deep"
    inside = own.encoded[:-1] + b',"later":' + bomb
    assert refused(own, inside).code == "too_deep"


@every_record
@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**300, 1e300, -1.5])
def test_no_number_beyond_its_bounds_gets_through(own: ServiceRecord, number: float) -> None:
    numbers = [name for name, of in own.value.items() if type(of) is int and name != "schema"]
    for name in numbers:
        assert refused(own, own.changed(**{name: number})).code == "bad_type"


def test_an_end_offset_of_two_to_the_63_is_refused() -> None:
    own = SERVICE_RECORDS[0]
    for name in ("start_offset", "last_stable_offset", "end_offset", "readable_end_offset"):
        assert own.read(own.key, own.changed(**{name: 2**63 - 1}))
        assert refused(own, own.changed(**{name: 2**63})).code == "bad_type"


@every_record
def test_a_key_that_names_something_else_is_refused(own: ServiceRecord) -> None:
    others = {
        "end offsets": b"orders-in-4",
        "partition look": b"events-1",
        "recommendation": b"others",
        "learned configs": b"others",
        "task movement": b"others",
        "partition movement": b"t-4",
        "task position": b'["orders","p","0_1"]',
        "application state": b"others",
        "catch-up rates": b'["others","p","0_1"]',
    }
    if own.name in others:
        error = refused(own, own.encoded, others[own.name])
        assert error.code == "bad_key"
        assert error.message.startswith("the key says ")
    if own.name not in ("cluster look",):
        for key in (b"", b"\xff", b"k" * 300_000):
            assert refused(own, own.encoded, key).code == "bad_key"


JUNK: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


@thorough
@given(
    st.sampled_from(SERVICE_RECORDS),
    st.none() | st.binary(max_size=20),
    st.none() | st.binary() | st.recursive(st.just(b""), lambda inner: inner.map(b"[%b]".__mod__)),
)
def test_no_bytes_at_all_get_anything_else_out_than_a_refusal(
    own: ServiceRecord, key: bytes | None, value: bytes | None
) -> None:
    for known in (key, own.key):
        with suppress(RefusedError):
            own.read(known, value)


@thorough
@given(st.data())
def test_whatever_stands_in_a_field_is_taken_or_refused(data: st.DataObject) -> None:
    own = data.draw(st.sampled_from(SERVICE_RECORDS))
    changes = data.draw(st.dictionaries(st.sampled_from(sorted(own.value)), JUNK, max_size=3))
    with suppress(RefusedError):
        own.read(own.key, own.changed(**changes))


def depth(value: Any) -> int:
    """Measure how deep JSON's own values are, the plain way."""
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(map(depth, inner), default=0) if isinstance(value, dict | list) else 0


@thorough
@given(
    st.recursive(
        st.text('a"\\[]{}\n', max_size=6),
        lambda inner: (
            st.lists(inner, max_size=2)
            | st.dictionaries(st.text('"\\[{', max_size=3), inner, max_size=2)
        ),
        max_leaves=9,
    ),
    st.integers(0, MOST_DEEP + 3),
)
@example("[" * 99, MOST_DEEP)
@example("\\", MOST_DEEP)
@example('"', MOST_DEEP)
@example('\\"[', MOST_DEEP + 1)
def test_depth_is_measured_as_a_parser_would(value: Any, more: int) -> None:
    for _ in range(more):
        value = [value, "[{"]
    text = json.dumps(value).encode()
    assert is_too_deep(text) == (depth(value) > MOST_DEEP)


def test_many_brackets_that_are_not_deep_are_no_bomb() -> None:
    assert not is_too_deep(json.dumps([{"why": "[[[[" * 50}] * 50).encode())


def test_a_time_that_is_yet_to_come_is_refused_by_more_than_clocks_differ() -> None:
    require_past(None, 0)
    require_past(1_000 + AHEAD_MS, 1_000)
    with pytest.raises(RefusedError, match="from_the_future: 300 s in the future, more than 300 s"):
        require_past(1_001 + AHEAD_MS, 1_000)


def test_a_recommendation_of_the_future_is_refused() -> None:
    (own,) = (own for own in SERVICE_RECORDS if own.name == "recommendation")
    for name in ("as_of_ms", "decided_at_ms"):
        assert refused(own, own.changed(**{name: 4_102_444_800_000})).code == "from_the_future"


def test_a_value_is_written_by_its_fields_names_in_json_and_by_no_others() -> None:
    (own,) = (own for own in SERVICE_RECORDS if own.name == "task movement")
    assert json.loads(movements.TASKS.encode_fields(own.value)) == own.value
    with pytest.raises(KeyError, match="later"):
        movements.TASKS.encode_fields({**own.value, "later": 1})


def test_what_a_follower_said_that_it_did_is_read_back() -> None:
    (own,) = (own for own in SERVICE_RECORDS if own.name == "recommendation")
    value = own.changed(leader={**own.value["leader"], "told": "followed d1"})
    _, read = read_recommendation(own.key, value, WRITTEN_MS)
    assert read is not None
    assert read.leader.told == "followed d1"


LACKING = object()


@pytest.mark.parametrize("wrong", [LACKING, None, "text", -1, {"a": 1}])
@pytest.mark.parametrize(
    "path",
    [
        ("cost",),
        ("kafka_cost",),
        ("cost", "copies"),
        ("cost", "seconds"),
        ("cost", "estimated"),
        ("leader", "result"),
        ("leader", "identical"),
        ("inputs", "unknown"),
        ("inputs", "scenario"),
        ("inputs", "scenario", "clients"),
        ("inputs", "scenario", "tasks", "0_0", "stateful"),
        ("movements", 0, "task"),
        ("movements", 0, "to"),
        ("probing_rebalance", "needed"),
        ("assignment",),
        ("process_ids",),
    ],
)
def test_a_recommendation_that_lacks_what_we_write_is_refused(
    path: tuple[str | int, ...], wrong: Any
) -> None:
    (own,) = (own for own in SERVICE_RECORDS if own.name == "recommendation")
    record = json.loads(own.encoded)
    inside: Any = record
    for step in path[:-1]:
        inside = inside[step]
    inside[path[-1]] = wrong
    if wrong is LACKING:
        del inside[path[-1]]
    assert refused(own, json.dumps(record).encode()).code == "bad_type"


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("recommendation", ("inputs", "scenario", "config", "max.warmup.replicas")),
        ("application state", ("config", "max.warmup.replicas")),
        ("recommendation", ("inputs", "scenario", "clients", PROCESS, "lags", "0_0")),
        ("application state", ("clients", PROCESS, "lags", "0_0")),
    ],
)
def test_a_scenario_that_contradicts_itself_is_refused(name: str, path: tuple[str, ...]) -> None:
    (own,) = (own for own in SERVICE_RECORDS if own.name == name)
    record = json.loads(own.encoded)
    inside: Any = record
    for step in path[:-1]:
        inside = inside[step]
    inside[path[-1]] = -1
    assert refused(own, json.dumps(record).encode()).code == "bad_type"
