"""The topology of the demo's Kafka Streams application, built without any Java source."""

from __future__ import annotations

from typing import Any, NamedTuple


class OrdersTopology(NamedTuple):
    """Two stateful subtopologies with a repartition between them.

    Subtopology 0 keeps the latest value of each key of the source topic; subtopology 1 counts the
    updates by key. Only operations that take no function are used: a function would have to be a
    Java class, or a call back into Python for every record.
    """

    source: str
    latest_store: str = "latest"
    repartition: str = "by-customer"
    counts_store: str = "counts"

    def build(self, java: Any) -> Any:
        """Return an ``org.apache.kafka.streams.Topology`` in the JVM of a py4j gateway.

        Optimisation stays off, so that the table has a changelog of its own and is not restored
        from the source topic.
        """
        streams = java.org.apache.kafka.streams
        strings = java.org.apache.kafka.common.serialization.Serdes.String
        # "as" and "with" are words of Python's own.
        materialized_as = getattr(streams.kstream.Materialized, "as")
        consumed_with = getattr(streams.kstream.Consumed, "with")
        repartitioned_as = getattr(streams.kstream.Repartitioned, "as")
        builder = streams.StreamsBuilder()
        (
            builder.table(
                self.source,
                consumed_with(strings(), strings()),
                materialized_as(self.latest_store),
            )
            .toStream()
            .repartition(
                repartitioned_as(self.repartition).withKeySerde(strings()).withValueSerde(strings())
            )
            .groupByKey()
            .count(materialized_as(self.counts_store))
        )
        return builder.build()

    def changelogs(self, application_id: str) -> dict[int, tuple[str, ...]]:
        """Return the changelog topics of each subtopology."""
        return {
            0: (f"{application_id}-{self.latest_store}-changelog",),
            1: (f"{application_id}-{self.counts_store}-changelog",),
        }
