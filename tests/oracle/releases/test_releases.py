"""Every member's assignment as each published release makes it, from 2.8 on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from caughtup.models.assignment.configs import NEWEST, Release, releases_of
from caughtup.models.errors import ScenarioError
from caughtup.models.partition_assignor.assignment import assign_partitions
from tests.oracle.conftest import FIRST_SEED, JAVA_SOURCES, seeds_of_a_family
from tests.oracle.generated.rebalances import (
    generate_failing_rebalance,
    generate_public_sticky_rebalance,
    generate_racked_rebalance,
    generate_rebalance,
    generate_sticky_rebalance,
    generate_tagged_rebalance,
)
from tests.oracle.rebalance_parts import Json
from tests.oracle.shrinking_rebalances import shrink_rebalance
from tests.oracle.test_partition_assignor import FAILED_LEADER
from tests.support.oracles import Oracle, compiled_java, running_oracle
from tests.support.rebalance_parsing import parse_rebalance
from tests.support.releases import RELEASES, release_classpath
from tests.support.sizes import SCENARIOS_A_DAY, THOROUGH

pytestmark = pytest.mark.heavy

ORACLE = "org.apache.kafka.streams.processor.internals.PartitionAssignorOracle"
SOURCES = [
    path
    for path in JAVA_SOURCES
    if path.stem.startswith("PartitionAssignor") or path.stem == "PublishedRelease"
]
GENERATORS = (
    generate_rebalance,
    generate_sticky_rebalance,
    generate_failing_rebalance,
    generate_tagged_rebalance,
    generate_racked_rebalance,
    generate_public_sticky_rebalance,
)
OracleOf = Callable[[str], Oracle]
#: Where a member reports a task without state, or one that is gone.
FAILED_BEFORE_3_1 = "java.lang.IllegalStateException: Tried to lookup lag for unknown task"


@pytest.fixture(scope="module")
def oracle_of() -> Iterator[OracleOf]:
    """The partition assignor of a release, compiled against its jars and started when asked."""
    running: dict[str, Oracle] = {}
    with ExitStack() as oracles:

        def start(version: str) -> Oracle:
            if version not in running:
                kafka = release_classpath(version)
                classes = compiled_java(SOURCES, kafka=kafka)
                running[version] = oracles.enter_context(
                    running_oracle(ORACLE, classes, kafka=kafka)
                )
            return running[version]

        yield start


def rebalance_of(version: str, seed: int) -> Json:
    """Make a rebalance that members and configs of a release can make."""
    release = RELEASES[version]
    newest = next(v for v in range(12) if release in releases_of(v))
    generators = GENERATORS if release == NEWEST else GENERATORS[:-1]
    rebalance = generators[seed % len(generators)](seed)
    for member in rebalance["members"].values():
        member["version"] = min(member["version"], newest)
    strategy = rebalance["config"]["rack.aware.assignment.strategy"]
    if release == Release.V3_5_2 and strategy == "balance_subtopology":
        rebalance["config"]["rack.aware.assignment.strategy"] = "min_traffic"
    return rebalance


def answer_as(release: Release, rebalance: Json) -> Json:
    """Assign as a release does."""
    try:
        assigned = assign_partitions(replace(parse_rebalance(rebalance), release=release))
    except ScenarioError as refused:
        return {"refused": refused.message}
    return {"members": {name: one.to_dict() for name, one in assigned.items()}}


def is_alike(ours: Json, theirs: Json) -> bool:
    """Return whether both say the same, or Kafka's leader fails, where nobody is given anything."""
    failed = str(theirs.get("exception", ""))
    if failed.startswith(FAILED_LEADER):
        return "refused" in ours
    return ours == theirs or failed.startswith(FAILED_BEFORE_3_1)


#: One of three releases each day, all with ``make thorough``: each compiles and starts a JVM.
HELD_TODAY = [
    version
    for number, version in enumerate(RELEASES)
    if THOROUGH or (FIRST_SEED // SCENARIOS_A_DAY + number) % 3 == 0
]


def cases(version: str) -> Any:
    mark = pytest.mark.family(f"whole rebalances, {version}")
    return pytest.param(version, marks=mark, id=version)


@pytest.mark.parametrize("version", [cases(version) for version in HELD_TODAY])
@seeds_of_a_family(one_of=2)
def test_a_release_gives_every_member_what_its_model_gives_it(
    oracle_of: OracleOf, version: str, seeds: range, tally: Callable[[int], None]
) -> None:
    oracle, release = oracle_of(version), RELEASES[version]

    def differs(rebalance: Json) -> bool:
        return not is_alike(answer_as(release, rebalance), oracle.ask(rebalance))

    for seed in seeds:
        rebalance = rebalance_of(version, seed)
        if differs(rebalance):
            least = shrink_rebalance(rebalance, differs)
            ours, theirs = answer_as(release, least), oracle.ask(least)
            pytest.fail(
                f"{rebalance['name']}\n{least}\nours: {ours}\n{version}'s: {theirs}", pytrace=False
            )
    tally(len(seeds))


def test_each_family_of_releases_decides_otherwise_than_the_next() -> None:
    """Or else there would be one family too many; nothing but our own models is asked."""
    families = list(Release)
    found: Counter[tuple[Release, Release]] = Counter()
    for seed in range(150, 250):
        for earlier, later in pairwise(families):
            version = next(v for v, release in RELEASES.items() if release == earlier)
            rebalance = rebalance_of(version, seed)
            if later == Release.V3_7:  # what rarely differs, differs there
                rebalance = generate_racked_rebalance(seed)
                rebalance["config"]["rack.aware.assignment.strategy"] = "min_traffic"
            found[earlier, later] += answer_as(earlier, rebalance) != answer_as(later, rebalance)
    print(found)
    assert len(+found) == len(families) - 1
