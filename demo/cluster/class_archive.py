"""Make a class-data-sharing archive of a broker's classes: it starts in half the CPU time then.

``python -m caughtup.demo.cluster.class_archive``. Brokers also start without the archive.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, TopicPartition

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce
from caughtup.demo.cluster.topics import create_topics
from caughtup.pipelines.java.command_lines import class_archive

_TOPIC = "classes"
_COMMIT_SECONDS = 30.0


def dump_classes(archive: Path) -> None:
    """Run a broker for a short time, with a topic and a group, and archive its loaded classes.

    Raises CaughtupError or OSError.
    """
    coming = archive.with_suffix(f".{os.getpid()}")
    os.environ["JDK_JAVA_OPTIONS"] = f"-XX:ArchiveClassesAtExit={coming}"
    try:
        with EmbeddedCluster() as cluster:
            create_topics(cluster, {_TOPIC: 1})
            produce(cluster, _TOPIC, 10)
            _commit(cluster)
            # A JVM writes the archive only when it ends normally.
            cluster.stop_node(1)
        coming.rename(archive)
    finally:
        del os.environ["JDK_JAVA_OPTIONS"]
        coming.unlink(missing_ok=True)


def _commit(cluster: EmbeddedCluster) -> None:
    consumer = Consumer({**cluster.client_config(), "group.id": _TOPIC, "log_level": 0})
    deadline = time.monotonic() + _COMMIT_SECONDS
    while time.monotonic() < deadline:
        try:
            consumer.commit(offsets=[TopicPartition(_TOPIC, 0, 1)], asynchronous=False)
            break
        except KafkaException:
            time.sleep(0.1)
    consumer.close()


def main() -> None:
    """Make the archive unless it exists."""
    archive = class_archive()
    if not archive.exists():
        dump_classes(archive)


if __name__ == "__main__":
    main()
