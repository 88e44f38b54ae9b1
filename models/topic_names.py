"""Topics by name and by id, and which groups have commits on them."""

from __future__ import annotations

from collections.abc import Iterable


class TopicNames:
    """Which id a topic has now: ``names`` maps ids (16 bytes) to names.

    A topic that is deleted and made again has another id; the old one is forgotten.
    """

    def __init__(self) -> None:
        self.names: dict[bytes, str] = {}
        self._ids: dict[str, bytes] = {}

    def learn(self, topic: str, topic_id: bytes) -> bool:
        """Take a topic's id; tell whether it is news. No two topics have the same: the last has it."""
        before = self._ids.get(topic)
        if before == topic_id:
            return False
        if before is not None:
            del self.names[before]
        if (other := self.names.get(topic_id)) is not None:
            del self._ids[other]
        self._ids[topic] = topic_id
        self.names[topic_id] = topic
        return True

    def forget(self, topic: str) -> None:
        """Take note that a topic is gone."""
        topic_id = self._ids.pop(topic, None)
        if topic_id is not None:
            del self.names[topic_id]

    def unknown(self, topics: Iterable[str]) -> set[str]:
        """Name those of these topics whose ids aren't known."""
        return {topic for topic in topics if topic not in self._ids}


class TopicReaders:
    """Counts the partitions of each topic on which each group has a commit."""

    def __init__(self) -> None:
        self._readers: dict[str, dict[str, int]] = {}

    def add(self, topic: str, group: str) -> None:
        """Count one more partition."""
        groups = self._readers.setdefault(topic, {})
        groups[group] = groups.get(group, 0) + 1

    def remove(self, topic: str, group: str) -> None:
        """Count one less."""
        groups = self._readers[topic]
        groups[group] -= 1
        if not groups[group]:
            del groups[group]
            if not groups:
                del self._readers[topic]

    def groups(self, topic: str) -> Iterable[str]:
        """Name the groups that have commits on a topic."""
        return self._readers.get(topic, {})

    def topics(self) -> set[str]:
        """Name the topics on which there are commits."""
        return set(self._readers)
