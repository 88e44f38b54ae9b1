"""Share groups of Java's clients, and what Kafka's Admin says of them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.pipelines.java.command_lines import find_java, quick_start
from caughtup.pipelines.java.jars import classpath
from tests.support.oracles import compiled_java

_SOURCE = Path(__file__).parents[1] / "java" / "ShareGroups.java"
#: What a cluster of one broker needs to keep share groups' state.
ONE_BROKER = {
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # Members learn their assignment sooner, and what one has taken is another's sooner.
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.record.lock.duration.ms": "15000",
}


class ShareGroups:
    """The Java program; each command returns once it is done."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def tell(self, command: str) -> list[str]:
        """Give a command (see the program); return the lines that it prints."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        lines: list[str] = []
        while (line := self._process.stdout.readline().strip()) != "done":
            assert self._process.poll() is None, f"the program ended at {command!r}"
            lines.append(line)
        return lines

    def offsets(self, group: str) -> dict[tuple[str, int], tuple[int, int]]:
        """Return the start offset and the lag of each partition, as the Admin lists them."""
        found = {}
        for line in self.tell(f"offsets {group}"):
            topic, number, start, lag = line.split()
            found[topic, int(number)] = int(start), int(lag)
        return found


@contextmanager
def share_groups(cluster: EmbeddedCluster) -> Iterator[ShareGroups]:
    """Run the program beside a cluster."""
    path = os.pathsep.join((classpath(), str(compiled_java([_SOURCE]))))
    command = [str(find_java().program), *quick_start(), "-cp", path, "oracles.ShareGroups"]
    with subprocess.Popen(
        [*command, cluster.bootstrap_servers],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            yield ShareGroups(process)
        finally:
            process.kill()
