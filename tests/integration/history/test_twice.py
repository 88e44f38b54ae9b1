"""Two jobs with the same checkpoint at once: one refuses by name, and every record is there once."""

from __future__ import annotations

import uuid
from contextlib import ExitStack
from pathlib import Path

import pytest

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.topics import create_topics
from tests.integration.conftest import MakeTopic
from tests.support.pipelines.committing import Committing
from tests.support.pipelines.history_job import Job, wait_for
from tests.support.service import wait_for as wait_until

pytestmark = pytest.mark.xdist_group("spark")


@pytest.mark.thorough
def test_one_of_two_jobs_with_one_checkpoint_refuses_and_nothing_is_doubled(
    cluster: EmbeddedCluster, make_topic: MakeTopic, tmp_path: Path
) -> None:
    prefix = f"twice-{uuid.uuid4().hex[:8]}-"
    end_offsets = f"{prefix}end-offsets"
    create_topics(cluster, {end_offsets: 1})
    jobs = [Job(cluster, prefix, tmp_path) for _ in range(2)]
    for number, job in enumerate(jobs):
        job.log = tmp_path / f"log-{number}"
    with ExitStack() as stack:
        committing = stack.enter_context(Committing(cluster, make_topic("orders"), end_offsets))
        arguments = ("--trigger-seconds", "1", "--master", "local[1]")
        processes = [stack.enter_context(jobs[0].running(*arguments))]
        wait_for("a batch", lambda: jobs[0].batch() >= 0, jobs[0], processes[0])
        processes.append(stack.enter_context(jobs[1].running(*arguments)))

        def ended() -> list[int]:
            return [n for n, process in enumerate(processes) if process.poll() is not None]

        [refused] = wait_until("one of them ends", ended, 120)
        assert processes[refused].returncode == 1
        said = jobs[refused].said().splitlines()[-1]
        assert said.startswith("caughtup: another job writes with this checkpoint: "), said
        other, process = jobs[1 - refused], processes[1 - refused]
        before = other.batch()
        wait_for("the other one goes on", lambda: other.batch() > before + 1, other, process)
        committing.stop()
    other.finish()
    rows = other.rows("commits", "log_partition", "log_offset", "group")
    ours = sorted(row[:2] for row in rows if row[2].startswith(committing.prefix))
    assert ours == committing.committed()
    ends = other.rows("end_offsets", "log_partition", "log_offset")
    assert sorted(ends) == committing.end_offsets()
