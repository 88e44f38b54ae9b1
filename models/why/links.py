"""The answer to "why?": links from the true cause to what it leads to, each with its figures.

Names of topics, clients and groups come from the cluster. Others chose them, so they are data: each
stands in a field of its own as well as in the text.
"""

from __future__ import annotations

from collections.abc import Sized
from typing import Literal, NamedTuple, get_args

from caughtup.models.durations import counted
from caughtup.models.ids import TopicPartition
from caughtup.models.rebalances.rebalance import Sureness
from caughtup.models.records.fields import ABSENT, Absent, Part, as_json, changed

Kind = Literal[
    "broker_gone",
    "no_leader",
    "reassignment",
    "open_transaction",
    "connect_task_failed",
    "no_members",
    "poll_interval_exceeded",
    "rebalance_storm",
    "recent_rebalance",
    "partition_without_member",
    "restoring_tasks",
    "warmups_waiting",
    "rewound",
    "hot_partition",
    "no_progress",
    "slow_consumer",
    "bursts",
    "retention_ahead",
    "topic_deleted",
    "ok",
]
KINDS: frozenset[str] = frozenset(get_args(Kind))
#: The most links of an answer, and the most figures of a link.
MOST_LINKS, MOST_FIGURES = 10, 4
#: The most bytes of an answer as JSON.
MOST_BYTES = 3_800
#: The most characters of a name in a text and in a field, of a text, and of what is not known.
NAME_CHARACTERS, FIELD_CHARACTERS, TEXT_CHARACTERS, UNKNOWN_CHARACTERS = 60, 249, 300, 160
_SHORT_CHARACTERS = 40
_MOST_UNKNOWN = 6
_NAMES = ("topic", "member", "client", "host", "connector", "transactional_id")


class Figure(Part, array_like=True):
    """A figure of the evidence: its name, its value, and the metric that shows it, "" for none."""

    name: str
    value: int | float | str
    metric: str = ""


class Link(Part, kw_only=True, omit_defaults=True):
    """A cause, or what follows from the links before it, in one sentence with its evidence.

    ``sure``: ``certain``, the records say so; ``likely``, nothing else explains them; ``possible``,
    they don't contradict it. ``lag``: the offsets of the group's lag that it holds back, as far as
    known. The other fields name what it is about.
    """

    kind: Kind
    sure: Sureness
    text: str
    evidence: list[Figure]
    lag: int | Absent = ABSENT
    topic: str | Absent = ABSENT
    partition: int | Absent = ABSENT
    broker: int | Absent = ABSENT
    member: str | Absent = ABSENT
    client: str | Absent = ABSENT
    host: str | Absent = ABSENT
    connector: str | Absent = ABSENT
    task: int | Absent = ABSENT
    transactional_id: str | Absent = ABSENT


class Why(Part, kw_only=True):
    """Why a group is as it is: at most MOST_LINKS links, the true cause first.

    ``verdict`` is that of the group's lag; ``not_known`` says what could not be asked or seen, and
    ``left_out`` counts the links that did not fit.
    """

    group: str
    verdict: str
    links: list[Link]
    not_known: list[str]
    left_out: int = 0


class Name(NamedTuple):
    """A name from the cluster, to be written into a text with ``str``."""

    name: str

    def __str__(self) -> str:
        return cut(_line(self.name), NAME_CHARACTERS)


def named(partition: TopicPartition) -> str:
    """Return a partition's name in a text: ``orders-3``."""
    return f"{Name(partition.topic)}-{partition.partition}"


def and_others(things: Sized, what: str = "other partition") -> str:
    """Return what follows the first of some things in a text: ``and 2 other partitions``."""
    others = len(things) - 1
    return f" and {counted(others, what)}" if others else ""


def verb(things: Sized, one: str, several: str) -> str:
    """Return the verb of a sentence about the first of some things and the others."""
    return one if len(things) == 1 else several


def cut(text: str, most: int) -> str:
    """Return a text of at most ``most`` characters, with an ellipsis if it was longer."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def fitted(group: str, verdict: str, links: list[Link], not_known: list[str]) -> Why:
    """Return the answer within its bounds: names and texts cut, and the last links left out."""
    kept = [_bounded(link, FIELD_CHARACTERS) for link in links[:MOST_LINKS]]
    unknown = [cut(_line(one), UNKNOWN_CHARACTERS) for one in not_known[:_MOST_UNKNOWN]]
    why = Why(
        group=cut(group, FIELD_CHARACTERS),
        verdict=verdict,
        links=kept,
        not_known=unknown,
        left_out=len(links) - len(kept),
    )
    if _size(why) > MOST_BYTES:
        why.group = cut(group, _SHORT_CHARACTERS)
        why.links = [_bounded(link, _SHORT_CHARACTERS) for link in kept]
    while _size(why) > MOST_BYTES and (len(why.links) > 1 or why.not_known):
        if len(why.links) > 1:
            why.links.pop()
            why.left_out += 1
        else:
            why.not_known.pop()
    return why


def _size(why: Why) -> int:
    return len(bytes(as_json(why)))


def _bounded(link: Link, most: int) -> Link:
    names = {
        name: cut(value, most) for name in _NAMES if isinstance(value := getattr(link, name), str)
    }
    evidence = [
        changed(one, value=cut(one.value, NAME_CHARACTERS)) if isinstance(one.value, str) else one
        for one in link.evidence[:MOST_FIGURES]
    ]
    return changed(link, text=cut(_line(link.text), TEXT_CHARACTERS), evidence=evidence, **names)


def _line(text: str) -> str:
    """Return a text without characters that would end its line or change how it is shown."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)
