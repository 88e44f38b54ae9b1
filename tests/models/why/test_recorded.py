"""Incidents that were staged on a real cluster and recorded: the true cause comes first.

``python -m tests.integration.groups.stage_incidents --record tests/models/why/incidents`` records others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from caughtup.models.why.links import Why
from tests.support.groups.recorded_incidents import Recorded
from tests.support.groups.staged_incidents import CAUSES

FILES = sorted((Path(__file__).parent / "incidents").glob("*.json.gz"))
#: Nine of ten, as a share: no kind of incident may be one that is never named.
MOST_WRONG = len(FILES) // 10


def name_of(file: Path) -> str:
    return file.name.removesuffix(".json.gz")


@cache
def played(file: Path) -> tuple[Sequence[str], Why]:
    """Return what was staged of a recorded incident, and what the models say of it."""
    recorded = Recorded.read(file)
    return recorded.staged, recorded.play()


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_nothing_is_called_certain_that_was_not_staged(file: Path) -> None:
    staged, found = played(file)
    certain = {link.kind for link in found.links if link.sure == "certain"}
    assert not certain & (CAUSES - set(staged)), found
    assert len(found.links) <= 10


def test_a_true_cause_comes_first_in_nine_of_ten() -> None:
    assert len(FILES) >= 40
    wrong, kinds = list[str](), Counter[int]()
    for file in FILES:
        staged, found = played(file)
        kinds[len(name_of(file).split("+"))] += 1
        first = found.links[0].kind if found.links else None
        if first not in staged:
            wrong.append(f"{name_of(file)}: {first}")
    assert len(wrong) <= MOST_WRONG, wrong
    assert min(kinds[1], kinds[2]) >= 18
