"""What a KRaft controller makes of a reassignment, against the jars of each release's rule."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import pytest

from caughtup.models.reassignments.controllers import (
    ADDED_SUFFICE,
    NEWEST_COMPARED,
    WHOLE_TARGET,
)
from caughtup.pipelines.java.find import QUICK_START, find_java
from caughtup.pipelines.java.jars import KAFKA_VERSION, ensure_jars, fetch_jars
from tests.oracle.conftest import QUIET, seeds_of_a_family
from tests.oracle.generated.reassignments import Asked, generate_walk
from tests.support.controllers.kraft import Release

#: The last release with the first rule, the last with the second, and the demo's.
RELEASES = ("3.7.2", "4.2.0", KAFKA_VERSION)


def software(release: str) -> tuple[int, int]:
    major, minor, _ = release.split(".")
    return int(major), int(minor)


@cache
def jars(release: str) -> str:
    if release == KAFKA_VERSION:
        directory = ensure_jars()
    else:
        directory = fetch_jars("kafka-metadata", [f"org.apache.kafka:kafka-metadata:{release}"])
    return os.pathsep.join(map(str, sorted(directory.glob("*.jar"))))


def answers(release: str, classes: Path, asked: Iterable[Asked]) -> list[str]:
    """Return the answers of a release's controller classes."""
    path = os.pathsep.join((jars(release), str(classes)))
    name = "org.apache.kafka.controller.ControllerOracle"
    done = subprocess.run(
        [str(find_java().program), *QUICK_START, QUIET, "-cp", path, name],
        input="".join(f"{one.line()}\n" for one in asked),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.family("reassignments, as a KRaft controller writes them")
@seeds_of_a_family(5_000)
@pytest.mark.parametrize(
    "release",
    [*(pytest.param(one, marks=pytest.mark.thorough) for one in RELEASES[:-1]), RELEASES[-1]],
)
def test_generated_partitions_become_what_the_published_controller_makes_of_them(
    oracle_classes: Path, release: str, seeds: range, tally: Callable[[int], None]
) -> None:
    walks = {seed: list(generate_walk(seed, software(release))) for seed in seeds}
    asked = [(seed, one) for seed, walk in walks.items() for one in walk]
    theirs = answers(release, oracle_classes, (one for _, one in asked))
    assert len(theirs) == len(asked)
    for (seed, one), their in zip(asked, theirs, strict=True):
        assert one.answer(software(release)) == their, f"seed {seed}: {one}"
    seen = Counter(_kind(one, software(release)) for _, one in asked)
    print(dict(sorted(seen.items())))
    if len(seeds) >= 500:
        assert len(seen) == len(KINDS), f"never generated: {KINDS - seen.keys()}"
    tally(len(seeds))


KINDS = {
    *("starts", "goes on", "completes at once", "completes", "is cancelled", "refused", "revert"),
    *("waits", "has a broker in both lists", "only its ISR changes"),
}


def _kind(one: Asked, release: Release) -> str:
    after = one.after(release)
    if one.what == "revert":
        return "revert"
    if after is None:
        return "refused"
    if set(after.adding) & set(after.removing):
        return "has a broker in both lists"
    if one.what == "cancel":
        return "is cancelled"
    if not one.state.in_progress and one.what == "isr":
        return "only its ISR changes"
    if one.what == "reassign":
        if not after.in_progress:
            return "completes at once"
        return "goes on" if one.state.in_progress else "starts"
    return "waits" if after.in_progress else "completes"


def test_the_releases_that_are_compared_have_all_the_rules() -> None:
    first, second, newest = map(software, RELEASES)
    assert first < WHOLE_TARGET <= second < ADDED_SUFFICE <= newest == NEWEST_COMPARED
    assert (second[0], second[1] + 1) == ADDED_SUFFICE
