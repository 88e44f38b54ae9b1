"""Executors of another Python, and a connector for another Scala: a line that says what to do.

Neither gets as far as Kafka: nothing listens where it is looked for.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from caughtup.pipelines.java.find import QUICK_START
from caughtup.pipelines.java.jars import (
    SHIPPED_WITH_PYSPARK,
    connector_of,
    fetch_jars,
    spark_connector,
)
from tests.support.pipelines.spark_cluster import make_python, site_packages

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.thorough,
    pytest.mark.timeout(1_200),
]

SECONDS = 1_000
#: A Python that takes itself for one of another release, as its workers compare it.
OTHER_PYTHON = """
    import sys
    from collections import namedtuple
    Version = namedtuple("Version", "major minor micro releaselevel serial")
    sys.version_info = Version(3, sys.version_info.minor + 1, 0, "final", 0)
"""
#: A release of the connector that is published for both.
BOTH_SCALAS = "3.5.7"


@pytest.fixture
def other_python(tmp_path: Path) -> Path:
    python = make_python(tmp_path / "python", site_packages())
    (packages,) = python.parents[1].glob("lib/python*/site-packages")
    (packages / "other_release.py").write_text(textwrap.dedent(OTHER_PYTHON))
    (packages / "other_release.pth").write_text("import other_release\n")
    return python


def said(directory: Path, *command: str | Path, **environment: str) -> str:
    """Run a program that fails; return the last line that it writes."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PYSPARK_")}
    ended = subprocess.run(
        [sys.executable, *command],
        cwd=directory,
        env=clean | environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert ended.returncode == 1, ended.stderr
    return ended.stderr.strip().splitlines()[-1]


def test_executors_of_another_python(other_python: Path, tmp_path: Path) -> None:
    command = ["-m", "caughtup.agents", "pipeline", "history", "--bootstrap-servers", "127.0.0.1:1"]
    command += ["--output", str(tmp_path / "table"), "--checkpoint", str(tmp_path / "checkpoint")]
    command += ["--once", "--master", "local-cluster[1,1,1024]"]
    ours, theirs = (f"3.{sys.version_info.minor + more}" for more in (0, 1))
    # Without the workers of other tests, which import more than such a Python has.
    environment = {"PYSPARK_PYTHON": str(other_python), "SPARK_SUBMIT_OPTS": " ".join(QUICK_START)}
    assert said(tmp_path, *command, **environment) == (
        f"caughtup: Spark's executors can't run the job: executors run Python {theirs}, the driver "
        f"{ours}: name one of the driver's release in PYSPARK_PYTHON or spark.pyspark.python"
    )


def test_a_connector_for_another_scala(tmp_path: Path) -> None:
    fitting = spark_connector()
    other = connector_of(BOTH_SCALAS, "2.12" if "_2.13:" in fitting else "2.13")
    jars = fetch_jars("spark-kafka", [other], SHIPPED_WITH_PYSPARK)
    program = f"""
        from pathlib import Path
        from caughtup.pipelines.history.stream import HistoryOptions, history
        from caughtup.pipelines.spark.session import spark_session
        spark = spark_session("test", master="local[1]", jars=Path({str(jars)!r}))
        history(spark, HistoryOptions("127.0.0.1:1", "/x", "/y", None), lambda: False)
    """
    line = said(tmp_path, "-c", textwrap.dedent(program))
    assert "connector_unfit: the Kafka connector is of another release of Spark or Scala" in line
    assert line.endswith(f"; give spark-submit --packages {fitting}")
