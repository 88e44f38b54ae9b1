"""The follower's JSON reader takes what is JSON and refuses the rest, whatever it is."""

from __future__ import annotations

import base64
import json
import math
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.support.oracles import Oracle
from tests.support.sizes import daily

MAX_DEPTH = 64
MAX_NUMBER = 100
MALFORMED = object()
LONG = range(-(1 << 63), 1 << 63)
#: Of a character in an escape Jackson looks at the lowest byte only, which may be a digit's.
TAKEN_FOR_AN_ESCAPE = re.compile(rb"\\u[0-9a-fA-F]{0,3}[\x80-\xff]")

BAD = {
    "nothing": b"",
    "only space": b" \n",
    "an object that does not end": b'{"a": 1',
    "an array that does not end": b"[1",
    "a comma too many in an array": b"[1,]",
    "a comma too many in an object": b'{"a": 1,}',
    "a comma too few": b"[1 2]",
    "a colon too few": b'{"a" 1}',
    "a name that is no string": b"{1: 2}",
    "a name twice": b'{"a": 1, "a": 1}',
    "a name twice, in two spellings": b'{"a": 1, "\\u0061": 1}',
    "two values": b"1 2",
    "a leading zero": b"01",
    "a plus": b"+1",
    "a point without digits": b"1.",
    "digits without an integer": b".5",
    "a minus alone": b"-",
    "an exponent without digits": b"1e",
    "no number": b"NaN",
    "infinity": b"-Infinity",
    "half a word": b"tru",
    "a word in capitals": b"True",
    "a string that does not end": b'"a',
    "a string that ends in an escape": b'"a\\',
    "an unknown escape": b'"\\x41"',
    "half an escape": b'"\\u00"',
    "an escape that is not hexadecimal": b'"\\u00g0"',
    "an escape with a sign": b'"\\u+041"',
    "an escape in another script's digits": '"\\u००४१"'.encode(),
    "a line break in a string": b'"\n"',
    "a null character": b"\x00",
    "a comment": b"1 // one",
    "single quotes": b"'a'",
    "a byte order mark": b"\xef\xbb\xbf1",
    "UTF-16": '"a"'.encode("utf-16"),
    "a lone continuation byte": b'"\x80"',
    "an overlong encoding": b'"\xc0\xaf"',
    "a surrogate in UTF-8": b'"\xed\xa0\x80"',
    "too deep an array": b"[" * (MAX_DEPTH + 1) + b"1" + b"]" * (MAX_DEPTH + 1),
    "too deep an object": b'{"a":' * (MAX_DEPTH + 1) + b"1" + b"}" * (MAX_DEPTH + 1),
    "nothing but depth": b"[" * 1_000_000,
    "a number of too many digits": b"9" * (MAX_NUMBER + 1),
    "a fraction of very many digits": b"1." + b"0" * 1_000_000,
    "an exponent of very many digits": b"1e" + b"9" * 1_000_000,
    "a name that is very long and alone": b'{"' + b"a" * 1_000_000,
}
GOOD = {
    "the deepest": b"[" * MAX_DEPTH + b"1" + b"]" * MAX_DEPTH,
    "the greatest long": b"9223372036854775807",
    "the least long": b"-9223372036854775808",
    "one more than a long": b"9223372036854775808",
    "a number that no double holds": b"-1e400",
    "a number of many digits": b"9" * MAX_NUMBER,
    "minus nothing": b"-0",
    "a lone surrogate, escaped": b'"\\ud800"',
    "all escapes": b'"\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\uFFff"',
    "empty things": b'[{}, [], "", {"": null}]',
    "space everywhere": b'\t{ "a" :\r\n[ 1 , -2.5e-3 ] }\n',
}


@pytest.fixture(params=["follower_oracle", "oldest_oracle"])
def reader(request: pytest.FixtureRequest) -> Oracle:
    """The newest Jackson that comes with Kafka Streams, and the oldest."""
    oracle: Oracle = request.getfixturevalue(request.param)
    return oracle


def as_python(data: bytes) -> Any:
    """Read bytes as Python's own reader does, where that is as strict."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a name twice")
        return dict(pairs)

    def refuse(word: str) -> Any:
        raise ValueError(word)

    def number(digits: str) -> float | str:
        if len(digits) > MAX_NUMBER:
            raise ValueError("too long")
        value = float(digits)
        # JSON has no infinity: Jackson writes it as a string.
        return str(value).replace("inf", "Infinity") if math.isinf(value) else value

    def whole(digits: str) -> int:
        number(digits)
        return int(digits)

    try:
        value = json.loads(
            data.decode(),
            object_pairs_hook=unique,
            parse_constant=refuse,
            parse_int=whole,
            parse_float=number,
        )
    except ValueError:
        return MALFORMED
    return value if depth(value) <= MAX_DEPTH else MALFORMED


def depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value
    if not isinstance(value, dict | list):
        return 0
    return 1 + max(map(depth, inner), default=0)


def as_the_follower(oracle: Oracle, data: bytes) -> Any:
    answer = oracle.ask({"json": base64.b64encode(data).decode()})
    if "malformed" in answer:
        assert len(answer["malformed"]) < 100
        return MALFORMED
    return json.loads(answer["written"])


@pytest.mark.parametrize("name", BAD)
def test_what_is_not_json_is_refused(reader: Oracle, name: str) -> None:
    assert as_the_follower(reader, BAD[name]) is MALFORMED


@pytest.mark.parametrize("name", GOOD)
def test_what_is_json_is_read(reader: Oracle, name: str) -> None:
    expected = as_python(GOOD[name])
    assert expected is not MALFORMED
    assert as_the_follower(reader, GOOD[name]) == expected


def test_a_number_that_no_double_holds_is_infinite(reader: Oracle) -> None:
    """Python's writer would leave the quotes out, and then it were no JSON."""
    assert as_the_follower(reader, b"[1e400, -1e400]") == ["Infinity", "-Infinity"]


def test_nothing_of_what_is_refused_is_repeated(reader: Oracle) -> None:
    for data in (b"injected", b'{"injected": 1, "injected": 2}', b'"\\injected"', b"{injected: 1}"):
        answer = reader.ask({"json": base64.b64encode(data).decode()})
        assert answer["malformed"].startswith("not JSON: ")
        assert "injected" not in answer["malformed"]


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(LONG.start, LONG.stop - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
#: The oracle is a process that all examples share, and the first of them waits for it.
shared = settings(
    max_examples=daily(120, 300),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    print_blob=True,
)


@shared
@given(value=values, ascii_only=st.booleans())
def test_any_value_is_read_and_written_as_it_is(
    reader: Oracle, value: Any, ascii_only: bool
) -> None:
    data = json.dumps(value, ensure_ascii=ascii_only).encode()
    assert as_the_follower(reader, data) == value


@shared
@given(data=st.data(), value=values)
def test_damaged_json_is_read_as_python_reads_it(
    reader: Oracle, data: st.DataObject, value: Any
) -> None:
    text = bytearray(json.dumps(value).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        text[at : at + data.draw(st.integers(0, 2))] = data.draw(
            st.binary(max_size=2)
            | st.sampled_from([b'"', b"{", b"[", b",", b":", b"\\", b"e", b"-"])
        )
    assume(not TAKEN_FOR_AN_ESCAPE.search(text))
    assert as_the_follower(reader, bytes(text)) == as_python(bytes(text))
