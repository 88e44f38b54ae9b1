"""JSON that is strict about what it takes, and takes everything else as it is."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.agents.cli.assign import answer_line
from caughtup.agents.cli.strict_json import decode
from tests.models.assignors.building import client, described
from tests.support.sizes import daily

SCENARIO = described(client(active=("0_0",)), client({"0_0": 7}), stateful=("0_0",))
GOOD = json.dumps(SCENARIO).encode()
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**24), 10**24)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=4), inner)
    ),
    max_leaves=20,
)


@settings(print_blob=True)
@given(JSON, st.booleans())
def test_json_without_a_fault_is_decoded_as_it_is(value: Any, escaped: bool) -> None:
    """Escapes of whole surrogate pairs among it, which need the closer look."""
    assert decode(json.dumps(value, ensure_ascii=escaped).encode()) == (value, None)


@settings(print_blob=True)
@given(
    JSON,
    st.sampled_from(["NaN", "Infinity", "-Infinity", "1" * 4_301, '"\\ud83d"', '{"": 1, "": 1}']),
)
def test_a_fault_is_found_wherever_it_is(value: Any, fault: str) -> None:
    marked = json.dumps([value, {"here": ["fault", value]}]).replace('"fault"', fault)
    found = decode(marked.encode()).fault
    assert found is not None
    assert found.message.startswith("here: " if fault[0] != "{" else "here.: ")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b'{"a": {"b": 1, "c": 2, "b": 1}}', "a.b: is given twice"),
        (b'{"a": 1, "\\u0061": 1}', "a: is given twice"),
        (b'"\\ud800"', "the line: has half a character (UTF-8)"),
        (b"NaN", "the line: NaN is not a number in JSON"),
        (b'{"a": "\n"}', "the line is not JSON: Invalid control character at character 8"),
        (b'{"a": "b', "the line is not JSON: Unterminated string starting at character 7"),
        (b'{"a": 01}', "the line is not JSON: Expecting ',' delimiter at character 8"),
        (b"\xff", "the line is not UTF-8"),
    ],
)
def test_the_fault_says_where_and_what(line: bytes, says: str) -> None:
    fault = decode(line).fault
    assert fault is not None
    assert fault.message == says


@settings(max_examples=daily(200, 500), print_blob=True)
@given(st.data())
def test_any_damage_to_a_line_gives_one_answer_that_can_be_printed(data: st.DataObject) -> None:
    line = bytearray(GOOD)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(line) - 1))
        line[place : place + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=4))
    answer = answer_line(bytes(line).replace(b"\n", b""), None)
    printed = msgspec.json.encode(answer)
    assert b"\n" not in printed
    assert answer.keys() in ({"name", "error"}, {"name", "probing_rebalance_needed", "clients"})
