"""How tests are dealt to the two workers of ``make test``."""

from __future__ import annotations

from pathlib import Path

import pytest

_INTEGRATION = Path(__file__).parent / "integration"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep what shares clusters on one worker, and a file's tests together on the other."""
    for item in items:
        group = "integration" if _INTEGRATION in item.path.parents else str(item.path)
        item.add_marker(pytest.mark.xdist_group(group))
