"""Generations of a real Kafka Streams application, recorded by a real Spark and replayed."""

from __future__ import annotations

import json
import subprocess
import uuid
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from caughtup.demo.apps.streams import StreamsApplication
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce
from caughtup.demo.story.stage import caughtup_command
from caughtup.models.decisions.inputs.gathering import CLOCK_ALLOWANCE_MS
from tests.support.application_settings import add_parameters
from tests.support.kafka.topics import whole_topic
from tests.support.service import Service, wait_for

pytestmark = pytest.mark.xdist_group("spark")


def caughtup(*arguments: str | Path) -> str:
    """Run a command that starts Spark, and give what it prints."""
    ran = subprocess.run(
        [*caughtup_command(), *map(str, arguments), "--master", "local[1]"],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def recommended(cluster: EmbeddedCluster, topic: str) -> dict[int, dict[str, Any]]:
    """Read every recommendation there is: generation → record."""
    records = [json.loads(message.value()) for message in whole_topic(cluster, topic)]
    return {record["generation"]: record for record in records}


@pytest.mark.timeout(1_200)
@pytest.mark.thorough
def test_what_spark_records_is_what_the_service_decided_from(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    name = f"recorded-{uuid.uuid4().hex[:8]}"
    table, page = tmp_path / "generations", tmp_path / "page.html"
    with ExitStack() as stack:
        application = stack.enter_context(StreamsApplication(cluster, name, partitions=2))
        service = Service(cluster)
        # What the service learns of an application the job doesn't know.
        add_parameters(service, application)
        stack.enter_context(service)
        application.start_instance("one")
        produce(cluster, application.source, 2_000, keys=50)
        service.wait_total(0, "group_lag_records", group=name)
        application.start_instance("two")
        recommendations = service.topic("recommended-assignments")
        newest = wait_for(
            "a recommendation for both",
            lambda: next(
                (
                    record
                    for record in recommended(cluster, recommendations).values()
                    if record["group"] == name and len(record["process_ids"]) == 2
                ),
                None,
            ),
        )
        seen_ms = newest["decided_at_ms"] + CLOCK_ALLOWANCE_MS

        def looked_at() -> bool:
            looks = whole_topic(cluster, service.topic("end-offsets"))
            later = [look for look in looks if json.loads(look.value())["as_of_ms"] >= seen_ms]
            return len({look.key() for look in later if b"changelog" in look.key()}) == 4

        # Of a log at rest a look is published once a minute.
        wait_for("looks at its changelogs after the generation", looked_at, 120)
        command = ("pipeline", "generations", "--config", service.settings_file)
        assert "new generation" in caughtup(*command, "--output", table)

    rows = [row for row in pyarrow.parquet.read_table(table).to_pylist() if row["group"] == name]
    assert len({row["generation"] for row in rows}) == len(rows) >= 2
    assert not [row["error"] for row in rows if row["error"]]
    (same,) = [row for row in rows if row["generation"] == newest["generation"]]
    assert json.loads(same["scenario"]) == newest["inputs"]["scenario"]
    assert same["doubts"] == newest["inputs"]["unknown"]
    assert {member["process_id"] for member in same["members"]} == set(newest["process_ids"])

    printed = caughtup(
        *("replay", "--from", table, "--group", name, "--format", "json", "--report", page),
        *("--assignor", "high_availability", "--assignor", "minimal_movement"),
        *("--what", "num.standby.replicas=0,1"),
    )
    lines = {line["setting"]: line for line in map(json.loads, printed.splitlines())}
    assert len(lines) == 1 + 2 * 3
    recorded = lines["recorded"]
    assert recorded["generations"] == len(rows)
    assert recorded["changes"] >= 2, "one was alone before two came"
    assert recorded["undecided"] == 0
    assert all(line["changes"] == recorded["changes"] for line in lines.values())
    assert "<svg" in page.read_text()
