"""Releases of Kafka Streams, in families whose assignors decide alike."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum


class Release(IntEnum):
    """A family of releases whose assignors decide alike, in the order of their first releases.

    Later ones are greater. ``V3_5_2`` includes 3.6, whose rack-aware assignment 3.5.2 lacks.
    docs/design.md has a table of the differences.
    """

    V2_8 = 0
    V3_0 = 1
    V3_2 = 2
    V3_3 = 3
    V3_5_2 = 4
    V3_7 = 5

    @property
    def text(self) -> str:
        """The releases in words."""
        return _TEXTS[self]


_TEXTS: Mapping[Release, str] = {
    Release.V2_8: "2.8",
    Release.V3_0: "3.0 or 3.1",
    Release.V3_2: "3.2",
    Release.V3_3: "3.3 to 3.5.1",
    Release.V3_5_2: "3.5.2 or 3.6",
    Release.V3_7: "3.7 or later",
}
#: The newest one, up to Kafka 4.3.1.
NEWEST = Release.V3_7
#: The newest subscriptions that a release writes (``LATEST_SUPPORTED_VERSION``), by its family.
_VERSIONS: Mapping[Release, int] = {
    Release.V2_8: 9,
    Release.V3_0: 10,
    Release.V3_2: 11,
    Release.V3_3: 11,
    Release.V3_5_2: 11,
    Release.V3_7: 11,
}


def releases_of(version: int) -> tuple[Release, ...]:
    """Return the families whose newest subscription version is ``version``.

    Empty if none is modelled.
    """
    return tuple(release for release, latest in _VERSIONS.items() if latest == version)
