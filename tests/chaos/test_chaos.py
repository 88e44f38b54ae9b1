"""Some minutes of chaos, without a violation; ``make chaos MINUTES=…`` runs more of it."""

from __future__ import annotations

import os
import secrets

import pytest

from tests.chaos.__main__ import chaos

#: What hits one of several instances.
OF_INSTANCES = (
    *("service killed", "service suspended", "second instance", "hand-over"),
    *("instance ended", "instance cut off", "all instances killed"),
)
SEED = int(os.environ.get("CAUGHTUP_CHAOS_SEED", secrets.randbelow(1 << 31)))


@pytest.mark.thorough
@pytest.mark.integration
@pytest.mark.timeout(900)
def test_chaos_finds_no_violation() -> None:
    report = chaos(120, SEED)
    assert report.violations == [], f"seed {SEED}"


@pytest.mark.thorough
@pytest.mark.integration
@pytest.mark.timeout(900)
def test_chaos_finds_no_violation_where_instances_share_the_groups() -> None:
    report = chaos(75, SEED, kinds=OF_INSTANCES, instances=3)
    assert report.violations == [], f"seed {SEED}"
