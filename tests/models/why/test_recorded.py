"""Incidents that were staged on a real cluster and recorded: the true cause comes first.

``python -m tests.integration.groups.stage_incidents --record tests/models/why/incidents`` records others.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.support.groups.recorded_incidents import Recorded
from tests.support.groups.staged_incidents import CAUSES

FILES = sorted((Path(__file__).parent / "incidents").glob("*.json.gz"))
#: Nine of ten, as a share: no kind of incident may be one that is never named.
MOST_WRONG = len(FILES) // 10


def name_of(file: Path) -> str:
    return file.name.removesuffix(".json.gz")


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_nothing_is_called_certain_that_was_not_staged(file: Path) -> None:
    recorded = Recorded.read(file)
    found = recorded.play()
    certain = {link.kind for link in found.links if link.sure == "certain"}
    assert not certain & (CAUSES - set(recorded.staged)), found
    assert len(found.links) <= 10


def test_a_true_cause_comes_first_in_nine_of_ten() -> None:
    assert len(FILES) >= 40
    wrong, kinds = list[str](), Counter[int]()
    for file in FILES:
        recorded = Recorded.read(file)
        kinds[len(name_of(file).split("+"))] += 1
        links = recorded.play().links
        if not links or links[0].kind not in recorded.staged:
            wrong.append(f"{name_of(file)}: {links[0].kind if links else None}")
    assert len(wrong) <= MOST_WRONG, wrong
    assert min(kinds[1], kinds[2]) >= 18
