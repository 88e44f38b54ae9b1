"""Which topics may be those of a Connect worker cluster: as settings say, or by name and shape."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

#: The word in a topic's name that says what it is for, between the parts that its set has in common.
_WORDS = {
    "config": re.compile(r"(?<![a-z])configs?(?![a-z])"),
    "status": re.compile(r"(?<![a-z])status(?:es)?(?![a-z])"),
    "offset": re.compile(r"(?<![a-z])offsets?(?![a-z])"),
}
#: Sets that are read: whoever has more has to say which.
MOST_SETS = 50


class TopicSet(NamedTuple):
    """The topics of a worker cluster; "" for one that isn't known."""

    config: str
    status: str = ""
    offset: str = ""

    @property
    def topics(self) -> list[str]:
        """Those that are known."""
        return [topic for topic in self if topic]


def find_topic_sets(partitions: Mapping[str, int], prefix: str) -> list[TopicSet]:
    """Find sets among all topics (name → number of partitions), in order of their names.

    Their names differ in the one word that says what they are for, and a config topic has one
    partition, as Connect requires. Topics with our own ``prefix`` are none.
    """
    stems: dict[str, dict[str, str]] = {}
    for topic in sorted(partitions):
        if topic.startswith((prefix, "__consumer_offsets", "__transaction_state")):
            continue
        for kind, word in _WORDS.items():
            found = [*word.finditer(topic.lower())]
            if len(found) == 1:
                start, end = found[0].span()
                stem = f"{topic[:start]}*{topic[end:]}"
                stems.setdefault(stem, {}).setdefault(kind, topic)
    return [
        TopicSet(kinds["config"], kinds["status"], kinds.get("offset", ""))
        for _, kinds in sorted(stems.items())
        if "config" in kinds and "status" in kinds and partitions[kinds["config"]] == 1
    ][:MOST_SETS]
