"""Entries of the setting: a name that may be there, and a URI that can be read."""

from __future__ import annotations

import pytest

from caughtup.models.spark_queries import read_entry


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("/data/a", (None, "/data/a")),
        ("orders=/data/a", ("orders", "/data/a")),
        ("/data/day=1", (None, "/data/day=1")),
        ("orders=/data/day=1", ("orders", "/data/day=1")),
        ("file:///data/day=1", (None, "file:///data/day=1")),
        ("s3://bucket/a?region=eu=1", (None, "s3://bucket/a?region=eu=1")),
        ("orders=s3a://bucket/a", ("orders", "s3a://bucket/a")),
        ("abfss://files@account.net/a", (None, "abfss://files@account.net/a")),
    ],
)
def test_an_entry(text: str, entry: tuple[str | None, str]) -> None:
    assert read_entry(text) == entry


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "URI"),
        ("data", "URI"),
        ("orders=data", "URI"),
        ("=/data", "no name"),
        ("ftp://host/data", "of ftp"),
        ("dbfs:/data", "of dbfs"),
        ("s3://key:secret@bucket/a", "password"),
    ],
)
def test_what_is_no_entry_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as refused:
        read_entry(text)
    assert "secret" not in str(refused.value)
