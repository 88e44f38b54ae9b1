"""How bad verdicts are: what has none yet is as what isn't known, and what is new is the worst."""

from __future__ import annotations

from itertools import pairwise

import pytest

from caughtup.models.verdicts import ENDLESS, LAG, REASSIGNMENTS, UNTROUBLED, Vocabulary


@pytest.mark.parametrize(("kind", "unassessed"), [(LAG, "unknown"), (REASSIGNMENTS, "measuring")])
def test_what_has_no_verdict_yet_is_neither_well_nor_the_worst(
    kind: Vocabulary, unassessed: str
) -> None:
    assert kind.severity(None) == kind.severity(unassessed)
    assert kind.severity(kind.words[0]) < kind.severity(None) < kind.severity(kind.words[-1])


@pytest.mark.parametrize("kind", [LAG, REASSIGNMENTS])
def test_each_is_worse_than_the_one_before_it_and_a_newer_services_word_than_all(
    kind: Vocabulary,
) -> None:
    ranks = [*map(kind.severity, kind.words), kind.severity("a-new-one")]
    assert all(before < after for before, after in pairwise(ranks))


def test_no_reassignment_that_nobody_has_to_look_at_lasts_for_ever_or_is_red() -> None:
    assert UNTROUBLED.isdisjoint(ENDLESS)
    assert not [word for word in UNTROUBLED if REASSIGNMENTS.colours[word] == "red"]
