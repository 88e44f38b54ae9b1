"""The bench of rounds runs from the command line, and what it says adds up."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.service import caughtup

pytestmark = pytest.mark.thorough


def test_a_few_partitions_are_observed_in_few_requests(tmp_path: Path) -> None:
    arguments = ["bench", "reassignments", "--partitions", "30", "--rounds", "2"]
    ran = caughtup(*arguments, "--format", "json", directory=tmp_path)
    assert ran.code == 0, ran.err
    (figures,) = ran.lines
    assert figures["partitions"] == 30
    # List and log ends of two brokers; and of brokers, quorum, shapes, sizes and throttles.
    assert figures["bare"]["requests"] == 3
    assert figures["looks"]["requests"] == 11
    for of in ("looks", "bare"):
        assert 0 < figures[of]["median_seconds"] <= figures[of]["max_seconds"]
        assert 1 <= figures[of]["in_flight"] <= 3
        assert figures[of]["cpu_seconds"] > 0
