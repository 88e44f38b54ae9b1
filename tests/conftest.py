"""How tests are dealt to the two workers of ``make test``."""

from __future__ import annotations

import pytest

#: What lasts as long as the session and takes long to start, so that one worker has it alone.
_SHARED = ("scene", "cluster")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep together what shares a cluster, and otherwise what is in one file.

    First, since xdist writes the groups into the names of tests in this same hook.
    """
    shared: dict[str, str] = {}
    for item in items:
        used = [name for name in _SHARED if name in getattr(item, "fixturenames", ())]
        if used:
            shared.setdefault(str(item.path), used[0])
    for item in items:
        file = str(item.path)
        item.add_marker(pytest.mark.xdist_group(shared.get(file, file)))
