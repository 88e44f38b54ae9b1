"""Looks at a real cluster: each reads what came since, and one look after the other knows more."""

from __future__ import annotations

import uuid
from pathlib import Path

from caughtup.agents.looks.cluster import ClusterLooks
from caughtup.agents.progress import Progress
from caughtup.agents.settings import Settings
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce
from caughtup.models.wire.record_keys import RecordType
from tests.integration.conftest import MakeTopic
from tests.support.service import caughtup, commit


def test_each_look_reads_what_came_since_and_keeps_the_past(
    cluster: EmbeddedCluster, make_topic: MakeTopic
) -> None:
    topic, group = make_topic("words"), f"readers-{uuid.uuid4().hex[:8]}"
    produce(cluster, topic, 10)
    commit(cluster, group, topic, 4)
    looks = ClusterLooks(Settings(bootstrap_servers=cluster.bootstrap_servers))

    def lag() -> tuple[int | None, int]:
        state = looks.look(Progress())
        (row,) = state.partition_rows(group)
        return row.lag and row.lag.lag, state.counts.records[RecordType.OFFSET_COMMIT]

    first, read = lag()
    assert first == 6
    again, read_again = lag()
    assert (again, read_again) == (6, read), "nothing is read twice"
    commit(cluster, group, topic, 9)
    produce(cluster, topic, 5)
    third, read_third = lag()
    assert third == 6
    assert read < read_third <= read + 2, "the commit, which its client may say again"


def test_the_command_shows_groups_and_then_partitions(
    cluster: EmbeddedCluster, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic, group = make_topic("words"), f"readers-{uuid.uuid4().hex[:8]}"
    produce(cluster, topic, 10)
    commit(cluster, group, topic, 4)
    place = ["--bootstrap-server", cluster.bootstrap_servers]
    ran = caughtup("lag", *place, "--lagging", f"{group[:-2]}*", directory=tmp_path)
    assert (ran.code, ran.err) == (0, "")
    (row,) = ran.out.splitlines()[1:]
    assert row.split()[:3:2] == [group, "6"]
    ran = caughtup("lag", *place, group, directory=tmp_path)
    assert ran.out.splitlines()[1].split()[:6] == [group, topic, "0", "4", "10", "6"]
