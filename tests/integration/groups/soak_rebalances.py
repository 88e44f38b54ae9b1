"""``python -m tests.integration.groups.soak_rebalances``: healthy groups that rebalance are no storm.

For ``--minutes``, groups of real members on both protocols live as groups do: they are restarted member by
member, grow, shrink, lose a member that comes back, and get partitions. Exits 1 if the service says that one
of them is in a storm of rebalances.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from collections import Counter
from contextlib import ExitStack

import click
from prometheus_client.parser import text_string_to_metric_families

from caughtup.agents.progress import Progress
from caughtup.demo.cluster.cluster import EmbeddedCluster
from tests.support.groups.member_process import MemberProcess
from tests.support.groups.staged_rebalances import CLASSIC, CONSUMER, Stage, old_topic
from tests.support.service import Service

#: The protocol of each group, and what its members are configured with.
GROUPS: tuple[tuple[str, dict[str, object]], ...] = (
    (CLASSIC, {"partition_assignment_strategy": "range"}),
    (CLASSIC, {"partition_assignment_strategy": "cooperative-sticky"}),
    (CLASSIC, {"partition_assignment_strategy": "roundrobin"}),
    (CONSUMER, {}),
    (CONSUMER, {"group_remote_assignor": "range"}),
)
_MEMBERS, _MOST_PARTITIONS = 4, 12
#: The time between two changes of a group (s), and the look at the service's metrics.
_BETWEEN, _EVERY_SECONDS = (240.0, 720.0), 5.0
_STORMS, _REBALANCES = "caughtup_group_storm_rebalances", "caughtup_group_rebalances"


class LivingGroup(threading.Thread):
    """A group whose members come and go as they do where all is well."""

    def __init__(
        self, stage: Stage, config: dict[str, object], rng: random.Random, stop: threading.Event
    ) -> None:
        super().__init__(daemon=True)
        self._stage, self._config, self._rng, self._stopped = stage, config, rng, stop
        self._members: dict[str, MemberProcess] = {}
        self._partitions = 4
        self.did: Counter[str] = Counter()

    def run(self) -> None:
        """Start the members, and change something again and again."""
        for number in range(_MEMBERS):
            self._start(f"client-{number}")
        changes = (
            self._restart_all,
            self._grow,
            self._shrink,
            self._lose_one,
            self._add_partitions,
        )
        while not self._stopped.wait(self._rng.uniform(*_BETWEEN)):
            change = self._rng.choice(changes)
            self.did[change.__name__.strip("_")] += 1
            change()

    def _start(self, name: str) -> None:
        self._members[name] = self._stage.member(name, **self._config)

    def _restart_all(self) -> None:
        for name in list(self._members):
            self._members[name].leave()
            self._stopped.wait(self._rng.uniform(1, 8))
            self._start(name)
            self._stopped.wait(self._rng.uniform(3, 12))

    def _grow(self) -> None:
        if len(self._members) < 2 * _MEMBERS:
            self._start(f"client-{self._rng.randrange(10**6)}")

    def _shrink(self) -> None:
        if len(self._members) > 2:
            self._members.pop(self._rng.choice(sorted(self._members))).leave()

    def _lose_one(self) -> None:
        name = self._rng.choice(sorted(self._members))
        self._members[name].kill()
        self._stopped.wait(self._rng.uniform(5, 20))
        self._start(name)

    def _add_partitions(self) -> None:
        if self._partitions < _MOST_PARTITIONS:
            self._partitions += 2
            self._stage.grow(self._stage.topics[0], self._partitions)


def scraped(service: Service) -> tuple[list[str], Counter[str]]:
    """Return the storms, and the number of rebalances by cause."""
    storms, causes = [], Counter[str]()
    for family in text_string_to_metric_families(service.metrics_text()):
        for sample in family.samples:
            if sample.name == _STORMS and sample.value > 0:
                storms.append(f"{sample.labels} {sample.value:.0f}")
            elif sample.name == f"{_REBALANCES}_total":
                causes[sample.labels["cause"]] += int(sample.value)
    return storms, causes


@click.command(help=__doc__)
@click.option("--minutes", default=60.0, show_default=True)
@click.option("--seed", default=1, show_default=True)
def main(minutes: float, seed: int) -> None:
    storms, causes = dict[str, float](), Counter[str]()
    stop = threading.Event()
    with ExitStack() as running:
        cluster = running.enter_context(EmbeddedCluster(nodes=1))
        topic = old_topic(cluster)
        service = running.enter_context(Service(cluster))
        advance = running.enter_context(Progress().task("Soak", int(60 * minutes)))
        groups = []
        for number, (protocol, config) in enumerate(GROUPS):
            rng = random.Random(f"{seed} {number}")
            stage = Stage(cluster, service.url, protocol, rng, running, topic)
            groups.append(LivingGroup(stage, config, rng, stop))
            groups[-1].start()
        began = time.monotonic()
        while (passed := time.monotonic() - began) < 60 * minutes:
            time.sleep(_EVERY_SECONDS)
            advance(int(_EVERY_SECONDS))
            found, causes = scraped(service)
            for storm in found:
                if storm not in storms:
                    print(f"after {passed:.0f} s: {storm}", file=sys.stderr)
                    storms[storm] = passed
        stop.set()
        for one in groups:
            one.join(60)
    did = sum((one.did for one in groups), Counter[str]())
    print(f"seed {seed}, {minutes:g} minutes, {len(GROUPS)} groups: {dict(sorted(did.items()))}")
    print(f"rebalances by cause: {dict(causes.most_common())}, {causes.total()} in all")
    print(f"storms: {len(storms)}")
    sys.exit(bool(storms))


if __name__ == "__main__":
    main()
