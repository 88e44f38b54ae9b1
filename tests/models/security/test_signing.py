"""Signatures are good for one record of one group in one cluster, by a key that both sides have."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from caughtup.models.errors import CaughtupError
from caughtup.models.security.signing import SigningKey, find_forgery, read_keys, sign

SECRET = bytes(range(32))
KEY = SigningKey("2025-11", SECRET)
VALUE = b'{"schema": 1}'
#: By hand: each part behind its length, in four bytes.
VECTOR = (
    b"hmac-sha256:2025-11:"
    + hmac.new(
        SECRET,
        b"\x00\x00\x00\x22caughtup recommended-assignments 1"
        b"\x00\x00\x00\x02c1"
        b"\x00\x00\x00\x06orders"
        b'\x00\x00\x00\x0d{"schema": 1}',
        hashlib.sha256,
    )
    .hexdigest()
    .encode()
)


def line(name: str, secret: bytes = SECRET) -> str:
    return f"{name} {base64.b64encode(secret).decode()}\n"


def objection(header: bytes | None, *keys: SigningKey, **other: str) -> str | None:
    place = {"cluster": "c1", "group": "orders", **other}
    found = find_forgery(keys or (KEY,), place["cluster"], place["group"], VALUE, header)
    return found and found.code


def test_a_signature_is_over_the_cluster_the_group_and_the_value_each_behind_its_length() -> None:
    assert sign(KEY, "c1", "orders", VALUE) == VECTOR
    assert objection(VECTOR) is None


def test_a_record_without_a_signature_is_refused() -> None:
    assert objection(None) == "not_signed"


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"hmac-sha256:2025-11:",
        b"hmac-sha1" + VECTOR[11:],
        VECTOR[:-1],
        VECTOR + b"0",
        VECTOR + b"\n",
        VECTOR.upper(),
        VECTOR[:-1] + (b"0" if VECTOR[-1:] != b"0" else b"1"),
        VECTOR.replace(b"2025-11", b"2025-12"),
        b"\xff" * 1_000_000,
    ],
)
def test_a_signature_that_is_none_is_refused(header: bytes) -> None:
    assert objection(header) == "bad_signature"


def test_a_signature_is_good_for_nothing_else() -> None:
    assert objection(VECTOR, group="payments") == "bad_signature"
    assert objection(VECTOR, cluster="c2") == "bad_signature"
    assert objection(VECTOR, cluster="", group="c1orders") == "bad_signature"
    assert objection(sign(KEY, "c1", "orders", VALUE + b" ")) == "bad_signature"
    assert objection(sign(SigningKey("2025-11", bytes(32)), "c1", "orders", VALUE)) == (
        "bad_signature"
    )


def test_keys_rotate_since_each_has_an_id() -> None:
    new = SigningKey("2025-12", bytes(reversed(range(32))))
    both = read_keys(line("2025-12", new.secret) + line("2025-11"))
    assert both == (new, KEY)
    assert objection(sign(both[0], "c1", "orders", VALUE), *both) is None
    assert objection(VECTOR, *both) is None
    assert objection(VECTOR, new) == "bad_signature"


def test_a_key_file_has_a_line_for_each_key_and_comments() -> None:
    text = f"# the service signs with the first\r\n\n \t{line('a').strip()}\t\r\n{line('b.c_d-e')}"
    assert [key.name for key in read_keys(text)] == ["a", "b.c_d-e"]
    assert read_keys(text)[0].secret == SECRET


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file has no key"),
        ("# none\n", "the file has no key"),
        ("secret\n", "line 1 is not a key's id"),
        (line("a") + "b not/base64!\n", "line 2 is not a key's id"),
        (line("a" * 65), "line 1 is not a key's id"),
        (line("ä"), "line 1 is not a key's id"),
        ("a =AAA" + "A" * 60, "line 1 is not a key's id"),
        (line("a", SECRET[:31]), "the key in line 1 is shorter than 32 bytes"),
        (line("a") + line("a"), "the key id in line 2 occurs twice"),
    ],
)
def test_a_file_that_is_none_is_refused_and_nothing_of_it_is_said(text: str, message: str) -> None:
    with pytest.raises(CaughtupError) as refused:
        read_keys(text)
    assert refused.value.code == "bad_key_file"
    assert message in refused.value.message
    assert "AAA" not in refused.value.message
    assert "secret" not in refused.value.message


def test_a_secret_is_not_shown() -> None:
    assert repr(KEY) == "SigningKey(name='2025-11')"
    assert "SigningKey" in str(KEY)
    assert base64.b64encode(SECRET).decode() not in str(KEY)
