"""Followers in Java and in Python tell the service's recommendations from others alike."""

from __future__ import annotations

import base64
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from caughtup.followers.python.kafka.recommendations import find_forgery as find_forgery_by_file
from caughtup.models.errors import CaughtupError
from caughtup.models.security.signing import SigningKey, find_forgery, read_keys, sign
from tests.models.security.test_signing import KEY, SECRET, VALUE, VECTOR, line
from tests.support.oracles import Oracle

KEYS = line("2025-11")


def python(question: dict[str, Any]) -> tuple[str, str]:
    """Answer as the model does."""
    header = question["header"]
    try:
        found = find_forgery(
            read_keys(question["keys"]),
            question["cluster"],
            question["group"],
            base64.b64decode(question["value"]),
            None if header is None else base64.b64decode(header),
        )
    except CaughtupError as error:
        return error.code, error.message
    return (found.code, found.message) if found else ("", "")


def ask(oracle: Oracle, keys: str, header: bytes | None, **other: str) -> tuple[str, str]:
    question = {
        "keys": keys,
        "cluster": "c1",
        "group": "orders",
        "value": base64.b64encode(VALUE).decode(),
        "header": None if header is None else base64.b64encode(header).decode(),
        **other,
    }
    answer = oracle.ask(question)
    told = answer["code"], answer["message"]
    assert told == python(question), question
    return told


def test_the_same_vector_is_good_in_both(follower_oracle: Oracle) -> None:
    assert ask(follower_oracle, KEYS, VECTOR) == ("", "")
    assert ask(follower_oracle, KEYS, None)[0] == "not_signed"
    assert ask(follower_oracle, KEYS, VECTOR, group="payments")[0] == "bad_signature"
    assert ask(follower_oracle, KEYS, VECTOR, cluster="c2")[0] == "bad_signature"
    names = "gruppe-ä-\U0001f600"
    assert ask(follower_oracle, KEYS, sign(KEY, "c1", names, VALUE), group=names) == ("", "")


@pytest.mark.parametrize(
    "keys",
    [
        "",
        "# none",
        "\n\r\n\t\n",
        "no-key",
        "a  \tAAAA",
        "a AAA",
        "a " + "A" * 43,
        "a " + "A" * 43 + "=",
        "a " + "A" * 42 + "==",
        "a " + "A" * 41 + "===",
        "a " + "A" * 40 + "====",
        "a " + "A" * 40 + "=AAA",
        "a " + "A" * 40 + "A=A=",
        "a\u00a0" + "A" * 44,
        "a " + "A" * 44 + "\x0b",
        "a " + "A" * 44 + "\x0c\na " + "A" * 44,
        "a " + "A" * 44 + "\u2028b",
        "a " + "A" * 44 + "\nb " + "A" * 40,
        KEYS + KEYS,
        "# comment\r\n  " + KEYS,
        "a " + "A" * 60_000,
    ],
)
def test_key_files_are_read_alike(follower_oracle: Oracle, keys: str) -> None:
    ask(follower_oracle, keys, VECTOR)


def test_damaged_signatures_are_judged_alike(follower_oracle: Oracle) -> None:
    codes: Counter[str] = Counter()
    for seed in range(500):
        rng = random.Random(seed)
        key = SigningKey(rng.choice(["2025-11", "other"]), SECRET)
        header = bytearray(sign(key, "c1", "orders", VALUE))
        for _ in range(rng.choice([0, 0, 1, 2])):
            at = rng.randrange(len(header))
            header[at : at + rng.randint(0, 2)] = bytes(
                rng.choice([rng.randrange(256), rng.choice(b"0123456789abcdef:")])
                for _ in range(rng.randint(0, 2))
            )
        codes[ask(follower_oracle, KEYS, bytes(header))[0]] += 1
    assert codes.keys() == {"", "bad_signature"}


def test_the_file_is_read_as_it_is_now(tmp_path: Path) -> None:
    file = tmp_path / "keys"

    def code() -> str | None:
        found = find_forgery_by_file(file, "c1", "orders", VALUE, VECTOR)
        return found and found.code

    assert code() == "no_signing_key"
    file.write_text(KEYS)
    assert code() is None
    file.write_text(line("2025-12"))
    assert code() == "bad_signature"
    for bad in (b"", b"\xff", KEYS.encode() + b"#" * (1 << 16)):
        file.write_bytes(bad)
        assert code() == "no_signing_key"
