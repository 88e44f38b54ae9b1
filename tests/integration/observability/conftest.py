"""The scene that stands while this folder's tests look at it, and no longer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.observability.scene import Scene


@pytest.fixture(scope="package")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A cluster of its own with an application, the service and a Prometheus, all at work."""
    with Scene(tmp_path_factory.mktemp("scene")) as scene:
        scene.set()
        yield scene
