"""Two minutes of chaos, without a violation; ``make chaos MINUTES=…`` runs more of it."""

from __future__ import annotations

import os
import secrets

import pytest

from tests.chaos.__main__ import chaos


@pytest.mark.thorough
@pytest.mark.integration
@pytest.mark.timeout(900)
def test_chaos_finds_no_violation() -> None:
    seed = int(os.environ.get("CAUGHTUP_CHAOS_SEED", secrets.randbelow(1 << 31)))
    report = chaos(120, seed)
    assert report.violations == [], f"seed {seed}"
