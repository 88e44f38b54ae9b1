"""``caughtup lag`` of made-up states, as a program: ``python -m tests.support.lag_program``."""

from __future__ import annotations

import sys

from caughtup.agents.cli.lag import main as lag
from caughtup.agents.main import main
from caughtup.models.state.cluster import ClusterState
from tests.support.groups.records import START_MS, commit
from tests.support.states import assess, cluster_state, everything, judged, list_ends, read

#: Names of realistic maximum length.
LONG_GROUP = "connect-warehouse-eu-central-1-orders-v2-sink"
LONG_TOPIC = "commerce.public.orders.enriched.by-customer-and-region.v2"
#: Arguments that show the groups of ``everything``, or more groups than a pipe holds.
EVERYTHING, MANY = "--everything", "--many"


def state() -> ClusterState:
    """Return the groups of ``judged``, and one with long names and large numbers."""
    made = judged()
    for partition in range(12):
        end = 12_345_678_901 + partition
        list_ends(made, {partition: end}, at_ms=START_MS, topic=LONG_TOPIC)
        committed = end - 10 ** (partition % 8)
        read(made, commit(partition, committed, topic=LONG_TOPIC, group=LONG_GROUP))
    assess(made)
    return made


def many() -> ClusterState:
    """Return three thousand groups, whose lines don't fit into a pipe that nobody reads."""
    made = cluster_state()
    list_ends(made, {0: 100}, at_ms=START_MS, topic=LONG_TOPIC)
    groups = [f"{LONG_GROUP}-{number:05}" for number in range(3_000)]
    read(made, *(commit(0, 90, topic=LONG_TOPIC, group=group) for group in groups))
    return made


class Looks:
    """Stands for an observed cluster."""

    def __init__(self, found: ClusterState) -> None:
        self._found = found

    def look(self, _: object) -> ClusterState:
        """Return the cluster, which is always the same."""
        return self._found


if __name__ == "__main__":
    made = {EVERYTHING: everything, MANY: many}
    chosen = [word for word in sys.argv if word in made]
    found = made[chosen[0]]() if chosen else state()
    lag.ClusterLooks = lambda *_: Looks(found)  # type: ignore[assignment, misc]
    main(["lag", *(word for word in sys.argv[1:] if word not in made)], "caughtup")
