"""Sizes and numbers in words: the noun agrees with its number."""

from __future__ import annotations

import pytest

from caughtup.models.durations import counted, size


@pytest.mark.parametrize(
    ("number", "nouns", "words"),
    [
        (0, ("offset",), "0 offsets"),
        (1, ("offset",), "1 offset"),
        (2_000, ("offset",), "2,000 offsets"),
        (1, ("copy", "copies"), "1 copy"),
        (3, ("copy", "copies"), "3 copies"),
    ],
)
def test_a_noun_agrees_with_its_number(number: int, nouns: tuple[str, ...], words: str) -> None:
    assert counted(number, *nouns) == words


@pytest.mark.parametrize(
    ("value", "written"),
    [(0, "0 B"), (999, "999 B"), (1_000, "1.0 kB"), (9_960, "10 kB"), (999_600, "1.0 MB")],
)
def test_sizes_have_two_or_three_digits(value: int, written: str) -> None:
    assert size(value) == written
