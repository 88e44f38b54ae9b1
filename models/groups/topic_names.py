"""Topics by name and by id."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from caughtup.models.polls.commit_columns import CommitColumns
from caughtup.models.wire.consumer_offsets import head_names


class TopicNames:
    """Which id a topic has now: ``names`` maps ids (16 bytes) to names, no two of them the same.

    A topic that is deleted and made again has another id; the old one is forgotten. What brokers
    told of a topic counts, the last of it; what a commit says is a guess until they do, and makes
    them be asked again where it says otherwise.
    """

    def __init__(self) -> None:
        self.names: dict[bytes, str] = {}
        self._ids: dict[str, bytes] = {}
        self._told: set[str] = set()
        self._doubted: set[str] = set()

    def learn(self, topic: str, topic_id: bytes, *, told: bool = False) -> bool:
        """Learn a topic's id, ``told`` by the brokers or guessed; tell whether it is news."""
        before, holder = self._ids.get(topic), self.names.get(topic_id)
        if not told and before != topic_id and (topic in self._told or holder is not None):
            self._doubted.add(topic)
            return False
        if told:
            self._told.add(topic)
            self._doubted.discard(topic)
        if before == topic_id:
            return False
        if holder is not None:
            self.forget(holder)  # which gets it back when the brokers are asked again
        if before is not None:
            del self.names[before]
        self._ids[topic] = topic_id
        self.names[topic_id] = topic
        return True

    def learn_of(self, commits: CommitColumns, topics: Collection[str]) -> bool:
        """Learn the ids that commits name, of these topics; return whether any is news."""
        news = False
        for topic_id, head in commits.heads_by_topic_id():
            known = self.names.get(topic_id)
            if known is not None and head.endswith(known.encode()):
                continue  # mostly; anything else is found out by reading the names
            names = head_names(head)
            if names is not None and names[1] in topics:
                news |= self.learn(names[1], topic_id)
        return news

    def forget(self, topic: str) -> None:
        """Note that a topic is gone."""
        self._told.discard(topic)
        self._doubted.discard(topic)
        topic_id = self._ids.pop(topic, None)
        if topic_id is not None:
            del self.names[topic_id]

    def unknown(self, topics: Iterable[str]) -> set[str]:
        """Name those of these topics whose ids the brokers are to be asked for."""
        return {topic for topic in topics if topic not in self._told or topic in self._doubted}
