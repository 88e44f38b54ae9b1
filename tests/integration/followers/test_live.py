"""A real application that follows gets one more instance, under load, with the service beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from caughtup.agents.topics.definitions import SERVICE_TOPICS
from caughtup.demo.apps.restore_listener import RestoredCopy
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.story.growing import FIRST, FOLLOWING, LAST, Growing, now_ms
from caughtup.demo.story.growth import measure_growth
from tests.support.topics.published import require_valid

pytestmark = pytest.mark.thorough

TASKS = 24
#: A quarter of the tasks, and fewer can't balance four instances.
FEWEST = 6
#: Of state a task, many times what acceptable.recovery.lag is here.
RECORDS = 10_000
RECORDS_PER_SECOND = 300
SECONDS = 200


class Grown(NamedTuple):
    """What was measured, and by instance what its listeners tell of the time since it grew."""

    cluster: EmbeddedCluster
    figures: dict[str, Any]
    restored: dict[str, tuple[RestoredCopy, ...]]


@pytest.fixture(scope="module")
def grown(jar: Path) -> Iterator[Grown]:
    with Growing(tasks=TASKS, properties=FOLLOWING, class_path=[jar]) as stage:
        stage.set_up(RECORDS)
        calm_ms = now_ms()
        with stage.load(RECORDS_PER_SECOND):
            started_ms, balanced_ms = stage.grow(SECONDS)
            figures = measure_growth(stage, calm_ms, started_ms, balanced_ms)
        restored = {
            name: tuple(
                copy for copy in stage.application.restored(name) if copy.started_ms >= started_ms
            )
            for name in stage.application.instances
        }
        yield Grown(stage.cluster, figures, restored)


@pytest.mark.timeout(600)
def test_as_many_copies_are_built_as_are_recommended_and_no_more_than_it_takes(
    grown: Grown,
) -> None:
    built = {name: [c for c in copies if c.from_nothing] for name, copies in grown.restored.items()}
    assert {name: len(copies) for name, copies in built.items()} == {
        **dict.fromkeys(FIRST, 0),
        LAST: FEWEST,
    }
    assert grown.figures["copies_built"] == grown.figures["copies_recommended"] == FEWEST
    assert {(copy.role, copy.ending) for copy in built[LAST]} == {("standby", "PROMOTED")}
    assert grown.figures["copies_kafka"] > FEWEST


@pytest.mark.timeout(600)
def test_nothing_is_handed_over_cold(grown: Grown) -> None:
    assert grown.figures["cold_hand_overs"] == 0
    handed_over = [copy for copy in grown.restored[LAST] if copy.role == "active"]
    assert len(handed_over) == FEWEST
    assert all(copy.start > 0 and copy.ending == "RESTORED" for copy in handed_over)


@pytest.mark.timeout(600)
def test_every_instance_has_its_share(grown: Grown) -> None:
    assert grown.figures["actives"] == dict.fromkeys((*FIRST, LAST), TASKS // 4)


@pytest.mark.timeout(600)
def test_every_task_goes_on_meanwhile(grown: Grown) -> None:
    assert grown.figures["uncommitted"] == []


@pytest.mark.timeout(600)
def test_exact_mode_accounts_for_every_generation(grown: Grown) -> None:
    exact = grown.figures["exact"]
    assert exact["mismatch"] == 0
    assert sum(exact.values()) == grown.figures["generations_in_log"]
    # What it can't account for it says the reason of.
    assert bool(exact["undetermined"]) == bool(grown.figures["undetermined_because"])
    assert all(grown.figures["undetermined_because"])


@pytest.mark.timeout(600)
def test_every_record_is_as_its_topic_s_schema_says(grown: Grown) -> None:
    kinds = require_valid(grown.cluster, [topic.name for topic in SERVICE_TOPICS])
    assert {"ApplicationStateRecord", "PositionRecord", "RecommendationRecord"} <= kinds
