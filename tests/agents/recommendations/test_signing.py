"""The service signs with the key that its file has now, and never without one that it had."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from caughtup.agents.errors import UserError
from caughtup.agents.recommendations.signing import Signer
from caughtup.models.security.signing import HEADER, SigningKey, sign

ONE, TWO = SigningKey("one", bytes(32)), SigningKey("two", bytes(range(32)))


def line(key: SigningKey) -> str:
    return f"{key.name} {base64.b64encode(key.secret).decode()}\n"


def test_without_a_file_nothing_is_signed() -> None:
    assert Signer(None, "c1").headers("orders", b"{}") is None


def test_what_is_signed_carries_a_header_by_the_first_key(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(line(ONE) + line(TWO))
    headers = Signer(file, "c1").headers("orders", b"{}")
    assert headers == {HEADER: sign(ONE, "c1", "orders", b"{}")}


def test_a_key_that_is_exchanged_is_used_from_then_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "keys"
    file.write_text(line(ONE))
    signer = Signer(file, "c1")
    file.write_text(line(TWO) + line(ONE))
    assert signer.headers("orders", b"1") == {HEADER: sign(TWO, "c1", "orders", b"1")}
    for broken in ("two c2VjcmV0\n", ""):
        file.write_text(broken)
        assert signer.headers("orders", b"2") == {HEADER: sign(TWO, "c1", "orders", b"2")}
    file.unlink()
    assert signer.headers("orders", b"3") == {HEADER: sign(TWO, "c1", "orders", b"3")}
    # Once, until there is a key again; and never what is in the file.
    assert caplog.text.count("the former key is used") == 1
    assert "c2VjcmV0" not in caplog.text


@pytest.mark.parametrize("text", [None, "", "one c2VjcmV0\n", "\xff\xfe"])
def test_a_file_without_keys_is_refused_at_the_start(text: str | None, tmp_path: Path) -> None:
    file = tmp_path / "keys"
    if text is not None:
        file.write_bytes(text.encode("latin-1"))
    with pytest.raises(UserError) as refused:
        Signer(file, "c1")
    assert refused.value.message.startswith(f"setting signing_key_file: {file}: ")
    assert "c2VjcmV0" not in refused.value.message
