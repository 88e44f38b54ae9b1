"""What is wrong with own topics that others made, or changed."""

from __future__ import annotations

import pytest

from caughtup.agents.topics.checks import problems_of
from caughtup.agents.topics.definitions import (
    APPLICATION_STATES,
    END_OFFSETS,
    LAG,
    MOVEMENTS,
    RECOMMENDATIONS,
    SERVICE_TOPICS,
    ServiceTopic,
)

OWN = {own.name: own for own in SERVICE_TOPICS}
#: What brokers add to what a topic was made with.
DEFAULTS = {
    "cleanup.policy": "delete",
    "max.message.bytes": "1048588",
    "message.timestamp.type": "CreateTime",
    "min.compaction.lag.ms": "0",
    "retention.ms": "604800000",
}


def as_made(own: ServiceTopic) -> dict[str, str]:
    made = {"cleanup.policy": own.cleanup, "compression.type": own.compression, **own.config}
    return DEFAULTS | made


@pytest.mark.parametrize("own", SERVICE_TOPICS, ids=lambda own: own.name)
def test_a_topic_as_the_service_makes_it_is_fine(own: ServiceTopic) -> None:
    assert problems_of(own, 1, as_made(own)) == {}
    assert problems_of(own, 1, {}) == {}, "what isn't told can't be wrong"


@pytest.mark.parametrize(
    ("name", "config", "problem", "says"),
    [
        (LAG, {"cleanup.policy": "delete"}, "cleanup.policy", "is delete, not compact"),
        (LAG, {"cleanup.policy": "compact,delete"}, "cleanup.policy", "is compact,delete, not"),
        (MOVEMENTS, {"cleanup.policy": "compact"}, "cleanup.policy", "is compact, not delete"),
        (MOVEMENTS, {"retention.ms": "3600000"}, "retention.ms", "less than 86400000"),
        (RECOMMENDATIONS, {"max.message.bytes": "1048588"}, "max.message.bytes", "67108864"),
        (LAG, {"max.message.bytes": "1000"}, "max.message.bytes", "larger records are refused"),
        (
            APPLICATION_STATES,
            {"message.timestamp.type": "CreateTime"},
            "message.timestamp.type",
            "is CreateTime, not LogAppendTime",
        ),
        (END_OFFSETS, {"compression.type": "zstd"}, "compression.type", "not uncompressed"),
        (END_OFFSETS, {"min.compaction.lag.ms": "0"}, "min.compaction.lag.ms", "a restart"),
    ],
)
def test_what_differs_is_named_with_what_follows(
    name: str, config: dict[str, str], problem: str, says: str
) -> None:
    own = OWN[name]
    found = problems_of(own, 1, as_made(own) | config)
    assert list(found) == [problem]
    assert says in found[problem]


def test_no_limit_is_no_problem_and_neither_is_what_cannot_be_read() -> None:
    own = OWN[MOVEMENTS]
    assert problems_of(own, 1, as_made(own) | {"retention.ms": "-1"}) == {}
    assert problems_of(own, 1, as_made(own) | {"retention.ms": "a week"}) == {}


def test_records_of_several_partitions_overtake_each_other() -> None:
    own = OWN[END_OFFSETS]
    assert problems_of(own, 3, as_made(own)) == {
        "partitions": "3 partitions, not 1: records may be read in another order than they were written"
    }
