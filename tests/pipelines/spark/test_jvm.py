"""How Spark's JVM ended, as Python's side finds out: a real process each, in the JVM's place."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError

from caughtup.models.errors import CaughtupError
from caughtup.pipelines.spark import session as spark_session
from caughtup.pipelines.spark.session import how_jvm_ended, report_dead_jvm

_RAISES = "import os, signal; os.kill(os.getpid(), signal.{})"


def session(process: subprocess.Popen[bytes] | None) -> Any:
    """Return what is asked of a session: the process that it started."""
    return SimpleNamespace(sparkContext=SimpleNamespace(_gateway=SimpleNamespace(proc=process)))


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (_RAISES.format("SIGKILL"), "was killed (SIGKILL), as by"),
        (_RAISES.format("SIGABRT"), "crashed; if it could, it wrote hs_err_pid"),
        (_RAISES.format("SIGTERM"), "was ended by SIGTERM"),
        ("raise SystemExit(143)", "ended with the exit status 143"),
    ],
)
def test_the_end_of_a_jvm_is_said_in_one_line(program: str, said: str) -> None:
    with (
        subprocess.Popen([sys.executable, "-c", program]) as process,
        pytest.raises(CaughtupError) as raised,
        report_dead_jvm(session(process)),
    ):
        raise ConnectionRefusedError
    assert raised.value.code == "spark_failed"
    assert raised.value.message.startswith(f"Spark's JVM {said}")
    assert "\n" not in raised.value.message


def test_what_fails_while_it_runs_is_no_end_of_the_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_session, "_ENDING_SECONDS", 0.1)
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        with pytest.raises(OSError, match="the disk"), report_dead_jvm(session(process)):
            raise OSError("the disk is full")
        process.kill()


def test_a_jvm_that_spark_submit_started_is_not_ours_to_ask() -> None:
    assert how_jvm_ended(session(None)) is None
    with pytest.raises(Py4JNetworkError), report_dead_jvm(session(None)):
        raise Py4JNetworkError("no answer")
