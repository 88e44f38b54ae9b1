"""The names of the service's own topics, without the prefix from the settings."""

from __future__ import annotations

END_OFFSETS = "end-offsets"
REASSIGNMENTS = "reassignments"
RECOMMENDATIONS = "recommended-assignments"
LEARNED_CONFIGS = "learned-configs"
MOVEMENTS = "movements"
LAG = "lag"
TRANSACTIONS = "transactions"
TASK_POSITIONS = "task-positions"
APPLICATION_STATES = "application-states"
CATCH_UP_RATES = "catch-up-rates"
PIPELINE_PROGRESS = "pipeline-progress"

#: The topics on which nothing may stand twice or too late. They are written in transactions.
SAID_ONCE = frozenset({RECOMMENDATIONS, LEARNED_CONFIGS, MOVEMENTS})

#: The default prefix.
DEFAULT_PREFIX = "caughtup-"

#: The longest recommendation that a follower reads, in bytes.
MOST_RECOMMENDATION_BYTES = 16 << 20


def with_prefix(topic: str, prefix: str = DEFAULT_PREFIX) -> str:
    """Return a topic's full name."""
    return prefix + topic
