"""The topic of the streams' progress, written with the driver's own Kafka client in the JVM.

That client understands the properties that the source does, and is there wherever that is.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from caughtup.models.errors import CaughtupError
from caughtup.models.records.keys import encode_group
from caughtup.pipelines.spark.jvm import UNANSWERED
from caughtup.pipelines.spark.session import one_line
from caughtup.pipelines.spark.sources import missing_topics

#: How long a record may be on its way before it is given up; the next one says more, anyway.
_PATIENCE_MS = 5_000
_PROPERTIES = {
    # A single try of one record: no order to keep, and no right but WRITE on the topic.
    "acks": "1",
    "enable.idempotence": "false",
    "max.block.ms": str(_PATIENCE_MS),
    "request.timeout.ms": str(_PATIENCE_MS),
    "delivery.timeout.ms": str(_PATIENCE_MS),
    "linger.ms": "0",
}
_log = logging.getLogger(__name__)


class ProgressTopic:
    """Sends records one at a time, and never fails: what goes wrong is logged, once in a row."""

    def __init__(self, spark: SparkSession, source_options: Mapping[str, str], topic: str) -> None:
        self._spark = spark
        self._options = dict(source_options)
        self._topic = topic
        self._producer: Any = None
        self._failing = False

    def send(self, key: str, value: bytes) -> bool:
        """Write a record and tell whether the brokers have it; takes a few seconds at most."""
        try:
            producer = self._open()
            if producer is None:
                return self._failed("there is no such topic; `caughtup run` creates it")
            jvm = self._jvm()
            record = jvm.org.apache.kafka.clients.producer.ProducerRecord(
                self._topic, encode_group(key), value
            )
            producer.send(record).get(_PATIENCE_MS, jvm.java.util.concurrent.TimeUnit.MILLISECONDS)
        except CaughtupError as error:
            return self._failed(error.message)
        except UNANSWERED as error:
            return self._failed(one_line(error))
        self._failing = False
        return True

    def close(self) -> None:
        """Let go of the connection."""
        producer, self._producer = self._producer, None
        if producer is None:
            return
        try:
            producer.close(self._jvm().java.time.Duration.ofMillis(_PATIENCE_MS))
        except UNANSWERED as error:
            self._failed(one_line(error))

    def _open(self) -> Any:
        """Return the producer; None while there is no topic, which a producer would create."""
        if self._producer is None and not missing_topics(self._spark, [self._topic], self._options):
            jvm = self._jvm()
            properties = jvm.java.util.Properties()
            for name, value in sorted(self._options.items()):
                properties.setProperty(name.removeprefix("kafka."), value)
            for name, value in sorted(_PROPERTIES.items()):
                properties.setProperty(name, value)
            serializer = jvm.org.apache.kafka.common.serialization.ByteArraySerializer
            self._producer = jvm.org.apache.kafka.clients.producer.KafkaProducer(
                properties, serializer(), serializer()
            )
        return self._producer

    def _jvm(self) -> Any:
        jvm = self._spark._jvm
        assert jvm is not None
        return jvm

    def _failed(self, why: str) -> bool:
        if not self._failing:
            _log.warning("writing to %s: %s; the stream itself continues", self._topic, why)
        self._failing = True
        return False
