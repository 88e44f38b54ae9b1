"""The configurations of Kafka's file connectors: a file to a topic, and a topic to a file."""

from __future__ import annotations

from pathlib import Path

_CONNECTORS = "org.apache.kafka.connect.file.FileStream"


def file_source(file: Path, topic: str) -> dict[str, str]:
    """Return the configuration of a source that writes a file's lines to a topic, in one task."""
    return {
        "connector.class": f"{_CONNECTORS}SourceConnector",
        "file": str(file),
        "topic": topic,
        "tasks.max": "1",
    }


def file_sink(file: Path, topic: str, tasks: int) -> dict[str, str]:
    """Return the configuration of a sink that appends a topic's records to a file, in its tasks."""
    return {
        "connector.class": f"{_CONNECTORS}SinkConnector",
        "file": str(file),
        "topics": topic,
        "tasks.max": str(tasks),
    }
