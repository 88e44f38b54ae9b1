"""The topology of the applications that are simulated: one subtopology with one store."""

from __future__ import annotations

from typing import Any, NamedTuple

STORE = "kept"


class Table(NamedTuple):
    """A topology of one subtopology with one store: the newest value of each key."""

    source: str

    def build(self, java: Any) -> Any:
        """Return the topology in the JVM of a py4j gateway; optimisation stays off."""
        streams = java.org.apache.kafka.streams
        strings = java.org.apache.kafka.common.serialization.Serdes.String
        builder = streams.StreamsBuilder()
        builder.table(
            self.source,
            getattr(streams.kstream.Consumed, "with")(strings(), strings()),
            getattr(streams.kstream.Materialized, "as")(STORE),
        )
        return builder.build()

    def changelogs(self, application_id: str) -> dict[int, tuple[str, ...]]:
        """Return the changelog topics of each subtopology."""
        return {0: (f"{application_id}-{STORE}-changelog",)}
