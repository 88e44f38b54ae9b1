"""The document's six cases on three real workers, with the service beside them: two minutes."""

from __future__ import annotations

import pytest

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.story.connect.cases import CASES
from caughtup.demo.story.connect.play import SixCases
from caughtup.demo.story.connect.rows import CaseRow
from tests.support.service import Service, wait_for

#: Longer than a worker takes to start again on a machine that is busy.
MAX_DELAY_MS = 25_000


@pytest.mark.thorough
def test_every_generation_is_a_match_and_nothing_raises_an_alarm(
    cluster: EmbeddedCluster, make_workers, follow
) -> None:
    with Service(cluster) as service:
        workers = make_workers(max_delay_ms=MAX_DELAY_MS)
        log = follow(workers)
        alarms: list[str] = []

        def look(row: CaseRow) -> None:
            found = service.connect(workers.group).get("contradiction", [])
            alarms.extend(
                f"{row.step.number} {one['name']} {one['contradiction']}: {one['why']}"
                for one in found
                if not one["waits"]
            )

        cases = SixCases(cluster, workers, log, print, look)
        cases.set_up()
        cases.play(CASES)

        def decided(result: str) -> float | None:
            return service.value("connect_decisions_total", group=workers.group, result=result)

        count = len(log.generations())
        wait_for("all are decided again", lambda: decided("match") == count)
        assert (decided("mismatch"), decided("undetermined")) == (0, 0)
        (about,) = service.connect(workers.group)["group"]
        assert [one["outcome"] for one in about["absences"]].count("in_time") >= 2
        assert "storm" not in about
        assert alarms == []
