"""The history's job in its image, with the mounts that docs/operating.md names, and no other.

The cluster and whoever reads the tables are outside.
"""

from __future__ import annotations

import os
import re
import signal
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.topics import create_topics
from caughtup.demo.processes.children import Process
from tests.support.control_groups import MemoryGroup, memory_group
from tests.support.images import UID, Container, Image
from tests.support.pipelines.committing import Committing
from tests.support.pipelines.history_job import Job
from tests.support.service import wait_for

#: Beside a build and a machine that does other things, too.
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(4_800)]

#: Where docs/operating.md mounts what outlives the container.
MOUNTED = "/var/lib/caughtup/history"
#: The limit that docs/operating.md names.
MEMORY_BYTES = 4 << 30
ROUNDS = 30
SECONDS = 1_200.0
WHERE = ("log_partition", "log_offset")


class Containers:
    """The job in containers with one volume and one control group, and its tables read outside."""

    def __init__(
        self, image: Image, cluster: EmbeddedCluster, directory: Path, group: MemoryGroup
    ) -> None:
        self._image, self._cluster, self._group = image, cluster, group
        self._prefix = f"image-{uuid.uuid4().hex[:8]}-"
        self._volume = directory / "volume"
        self._volume.mkdir()
        os.chown(self._volume, UID, UID)
        self._topic, self._end_offsets = f"{self._prefix}orders", f"{self._prefix}end-offsets"
        create_topics(cluster, {self._topic: 1, self._end_offsets: 1})
        #: The tables, as they are seen outside.
        self.tables = Job(cluster, self._prefix, self._volume)

    def start(self, *arguments: str) -> Container:
        """Start the job, with ``/tmp`` and the volume as all that it may write."""
        words = ["pipeline", "history", "--output", f"{MOUNTED}/tables"]
        words += ["--checkpoint", f"{MOUNTED}/checkpoint", *arguments]
        return Container(
            self._image,
            self._cluster.processes,
            environment={
                "CAUGHTUP_BOOTSTRAP_SERVERS": self._cluster.bootstrap_servers,
                "CAUGHTUP_TOPIC_PREFIX": self._prefix,
            },
            command=words,
            mounts={MOUNTED: self._volume},
            group=self._group.directory,
        )

    def once(self) -> None:
        """Take what there is, in a container that ends."""
        with self.start("--once") as container:
            assert ended(container.process) == 0, container.process.output()
            assert "Traceback" not in container.process.output()

    def committing(self) -> Committing:
        """Commit, and write looks at end offsets, until the context is left."""
        return Committing(self._cluster, self._topic, self._end_offsets)

    def check(self, *committed: Committing) -> None:
        """Hold the tables against the log: each commit and look is there once, and its lag."""
        rows = self.tables.rows("commits", *WHERE, "group", "committed")
        for one in committed:
            ours = [row for row in rows if row[2].startswith(one.prefix)]
            assert len(ours) > ROUNDS
            assert sorted(row[:2] for row in ours) == one.committed()
            lag = self.tables.rows("lag", "group", "committed", "source")
            told = {row[:2] for row in lag if row[0].startswith(one.prefix)}
            assert told == {row[2:] for row in ours}
        ends = self.tables.rows("end_offsets", *WHERE)
        assert sorted(ends) == committed[0].end_offsets()

    def files(self) -> Iterator[os.stat_result]:
        """Yield what is in the volume."""
        for directory, names, files in os.walk(self._volume):
            yield from (Path(directory, name).lstat() for name in (*names, *files))


@pytest.fixture
def group() -> Iterator[MemoryGroup]:
    with memory_group(MEMORY_BYTES) as group:
        yield group
        print(f"memory, with files that the kernel keeps: {group.peak() / 1e6:,.0f} MB at most")
        assert group.killed() == 0


@pytest.fixture
def containers(
    history_image: Image, images_cluster: EmbeddedCluster, tmp_path: Path, group: MemoryGroup
) -> Containers:
    return Containers(history_image, images_cluster, tmp_path, group)


def ended(*processes: Process) -> int | None:
    """Wait until one of them has ended; return its exit code."""
    wait_for("it has ended", lambda: any(one.exit_code is not None for one in processes), SECONDS)
    return next(one.exit_code for one in processes if one.exit_code is not None)


def commit_for_a_while(containers: Containers) -> Committing:
    with containers.committing() as committing:
        wait_for("commits", lambda: committing.rounds > ROUNDS)
    return committing


def wait_for_batch(containers: Containers, after: int, running: Sequence[Container]) -> None:
    def passed() -> bool:
        for one in running:
            assert one.process.exit_code is None, one.process.output()
        return containers.tables.batch() > after

    wait_for(f"a batch after {after}", passed, SECONDS)


def test_each_run_adds_what_was_committed_before_it(containers: Containers) -> None:
    first = commit_for_a_while(containers)
    began = time.monotonic()
    containers.once()
    print(f"the first run took {time.monotonic() - began:.0f} s")
    containers.check(first)
    second = commit_for_a_while(containers)
    containers.once()
    containers.check(first, second)
    assert {(one.st_uid, one.st_gid) for one in containers.files()} == {(UID, UID)}


def test_of_two_one_refuses_by_name_and_sigterm_ends_the_other(containers: Containers) -> None:
    arguments = ("--trigger-seconds", "1")
    with containers.committing() as committing, containers.start(*arguments) as one:
        wait_for_batch(containers, -1, [one])
        status = Path(f"/proc/{one.pid}/status").read_text()
        assert re.search(rf"^Uid:\s+{UID}\s+{UID}\s+{UID}\s+{UID}$", status, re.MULTILINE)
        assert re.search(r"^NSpid:\s+\d+\s+1$", status, re.MULTILINE)
        assert re.search(r"^CapEff:\s+0+$", status, re.MULTILINE)
        with containers.start(*arguments) as two:
            assert ended(one.process, two.process) == 1
            other, refused = (one, two) if one.process.exit_code is None else (two, one)
            said = refused.process.output().splitlines()[-1]
            assert said.startswith("caughtup: another job writes with this checkpoint: "), said
            wait_for_batch(containers, containers.tables.batch() + 1, [other])
            began = time.monotonic()
            os.kill(other.pid, signal.SIGTERM)
            assert ended(other.process) == 0, other.process.output()
            print(f"SIGTERM ended it within {time.monotonic() - began:.1f} s")
            assert "Traceback" not in other.process.output()
    containers.once()
    containers.check(committing)


def test_without_its_volume_it_says_what_it_cannot_write(
    history_image: Image, images_cluster: EmbeddedCluster
) -> None:
    words = ["pipeline", "history", "--once", "--output", f"{MOUNTED}/tables"]
    with Container(
        history_image,
        images_cluster.processes,
        environment={"CAUGHTUP_BOOTSTRAP_SERVERS": images_cluster.bootstrap_servers},
        command=[*words, "--checkpoint", f"{MOUNTED}/checkpoint"],
    ) as container:
        assert ended(container.process) == 1
        said = container.process.output()
    (line,) = [one for one in said.splitlines() if one.startswith("caughtup: ")]
    assert line.startswith(f"caughtup: can't write {MOUNTED}/")
    assert "Traceback" not in said
