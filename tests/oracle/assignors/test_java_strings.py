"""Hash codes of Java's strings, and the orders of its collections of them, against Java's own."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.assignors.java.strings import hash_code, in_hash_map_order, in_hash_set_order
from tests.support.sizes import daily

pytestmark = [pytest.mark.heavy, pytest.mark.xdist_group("java collections")]

# Any characters but halves of pairs, and names of one hash code, which crowd a bucket.
ALIKE = st.lists(st.sampled_from(["Aa", "BB"]), min_size=5, max_size=5).map("".join)
TEXTS = st.one_of(st.text(st.characters(codec="utf-8")), ALIKE, st.text("abc-0", max_size=4))
held = settings(max_examples=daily(20, 60), deadline=None, print_blob=True)


@held
@given(st.one_of(TEXTS, st.integers(0, 600).map(lambda length: "worker-" * length)))
def test_a_hash_code_is_javas(jvm: Any, text: str) -> None:
    assert hash_code(text) == jvm.java.util.Objects.hashCode(text) % (1 << 32)


@held
@given(st.lists(TEXTS, max_size=80))
def test_maps_and_sets_of_strings_are_walked_in_javas_orders(jvm: Any, texts: list[str]) -> None:
    different = list(dict.fromkeys(texts))
    added = jvm.java.util.LinkedHashSet()
    for text in different:
        added.add(text)
    one = jvm.java.util.HashMap()
    for text in added:
        one.put(text, text)
    assert in_hash_map_order(different) == list(one.keySet())
    another = jvm.java.util.HashMap()
    for text in one.keySet():
        another.put(text, text)
    assert in_hash_map_order(different, maps=2) == list(another.keySet())
    assert in_hash_set_order(different) == list(jvm.java.util.HashSet(added))
