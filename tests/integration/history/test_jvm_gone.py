"""``caughtup pipeline history`` when Spark's JVM dies under it: out of memory, or a crash of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from caughtup.demo.cluster.cluster import EmbeddedCluster
from tests.integration.history.test_command import running

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.thorough]

_SECONDS = 120.0


def jvm_of(process: subprocess.Popen[bytes]) -> int:
    """Return the process id of the JVM that a job started."""
    of = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    (child,) = of.read_text().split()
    return int(child)


def started(process: subprocess.Popen[bytes], checkpoint: Path, log: Path) -> None:
    """Wait until the job wrote a batch."""
    deadline = time.monotonic() + _SECONDS
    while not any(checkpoint.glob("commits/[0-9]*")):
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.1)


@pytest.mark.parametrize("stopping", [False, True])
def test_it_ends_in_one_line_and_without_an_error_where_it_was_to_end(
    cluster: EmbeddedCluster, tmp_path: Path, stopping: bool
) -> None:
    log, checkpoint = tmp_path / "log", tmp_path / "checkpoint"
    arguments = ["--bootstrap-servers", cluster.bootstrap_servers, "--trigger-seconds", "1"]
    arguments += ["--output", str(tmp_path / "tables"), "--checkpoint", str(checkpoint)]
    with running([*arguments, "--master", "local[1]"], log, tmp_path) as process:
        started(process, checkpoint, log)
        before = log.read_text()
        jvm = jvm_of(process)
        if stopping:
            process.send_signal(signal.SIGTERM)
        os.kill(jvm, signal.SIGKILL)
        ended = process.wait(_SECONDS)
    said = log.read_text().removeprefix(before)
    assert ended == (0 if stopping else 1), said
    assert "Traceback" not in said
    of_caughtup = [line for line in said.splitlines() if line.startswith("caughtup: ")]
    assert [line.partition(",")[0] for line in of_caughtup] == (
        [] if stopping else ["caughtup: Spark's JVM was killed (SIGKILL)"]
    ), said
