"""Releases of Kafka Streams, in families that decide alike."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum


class Release(IntEnum):
    """A family of releases that decide alike, named after its first; later ones are greater.

    ``V3_5_2`` has 3.6 in it, whose rack-aware assignment 3.5.2 doesn't have. What differs from one
    to the next is a table in docs/design.md.
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
    """Return the families whose members say that they know this version of subscriptions at most.

    None of those that are modelled, where it is an older or a newer one.
    """
    return tuple(release for release, latest in _VERSIONS.items() if latest == version)
