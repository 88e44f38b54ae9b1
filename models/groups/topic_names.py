"""Topics by name and by id."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from caughtup.models.polls.commit_columns import CommitColumns
from caughtup.models.wire.consumer_offsets import head_names


class TopicNames:
    """The present id of each topic: ``names`` maps ids (16 bytes) to names, one to one.

    A topic that is deleted and created again has another id; the old one is removed. The brokers'
    last answer about a topic counts; an id from a commit is a guess until the brokers answer, and
    makes the service ask again if it differs from their answer.
    """

    def __init__(self) -> None:
        self.names: dict[bytes, str] = {}
        self._ids: dict[str, bytes] = {}
        self._confirmed: set[str] = set()
        self._doubted: set[str] = set()

    def learn(self, topic: str, topic_id: bytes, *, confirmed: bool = False) -> bool:
        """Record a topic's id, ``confirmed`` by the brokers or guessed.

        Return whether it is new.
        """
        before, holder = self._ids.get(topic), self.names.get(topic_id)
        if (
            not confirmed
            and before != topic_id
            and (topic in self._confirmed or holder is not None)
        ):
            self._doubted.add(topic)
            return False
        if confirmed:
            self._confirmed.add(topic)
            self._doubted.discard(topic)
        if before == topic_id:
            return False
        if holder is not None:
            self.forget(holder)  # the brokers' next answer has its id, if it still exists
        if before is not None:
            del self.names[before]
        self._ids[topic] = topic_id
        self.names[topic_id] = topic
        return True

    def learn_from_commits(self, commits: CommitColumns, topics: Collection[str]) -> bool:
        """Record the ids that commits have, of these topics; return whether any is new."""
        news = False
        for topic_id, head in commits.heads_by_topic_id():
            known = self.names.get(topic_id)
            if known is not None and head.endswith(known.encode()):
                continue  # nearly always; other cases are decided by decoding the names
            names = head_names(head)
            if names is not None and names[1] in topics:
                news |= self.learn(names[1], topic_id)
        return news

    def forget(self, topic: str) -> None:
        """Remove a topic that is gone."""
        self._confirmed.discard(topic)
        self._doubted.discard(topic)
        topic_id = self._ids.pop(topic, None)
        if topic_id is not None:
            del self.names[topic_id]

    def unknown(self, topics: Iterable[str]) -> set[str]:
        """Return those of these topics whose ids the brokers have to be asked for."""
        return {topic for topic in topics if topic not in self._confirmed or topic in self._doubted}
