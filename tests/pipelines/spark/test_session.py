"""Starting Spark, and what is said when it can't."""

from __future__ import annotations

from pathlib import Path

import pytest

from caughtup.models.errors import CaughtupError
from caughtup.pipelines.spark.session import one_line, spark_session

pytestmark = pytest.mark.xdist_group("spark")


@pytest.fixture(autouse=True)
def outside_spark_submit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)


def test_a_java_home_without_java_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(CaughtupError, match=f"java_missing: .*{tmp_path}"):
        spark_session("test")


def test_no_java_at_all_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CaughtupError, match="java_missing: Spark needs Java"):
        spark_session("test")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("first\n\tat second", "first"),
        ("\n  \n first", "first"),
        ("", "ValueError"),
        (
            (
                "Raised. Message: Traceback (most recent call last):\n"
                '  File "a.py", line 1, in f\n    f()\nKeyError: 1\n'
                "During handling of the above exception, another exception occurred:\n"
                'Traceback (most recent call last):\n  File "b.py", line 2, in g\n    g()\n    ^^^\n'
                "ValueError: the disk is full\nin two lines\n\tat org.apache.spark.X(X.scala:1)\n"
            ),
            "ValueError: the disk is full",
        ),
        (
            (
                'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    f()\n'
                "py4j.protocol.Py4JJavaError: An error occurred while calling o1.count.\n"
                ": java.io.IOException: No space left on device\n\tat java.base/x\n"
            ),
            "java.io.IOException: No space left on device",
        ),
        (
            (
                "Error from python worker:\n  /bin/python3: No module named pyspark\n"
                "PYTHONPATH was:\n  /spark.jar\norg.apache.spark.SparkException: EOFException"
            ),
            "Error from python worker: /bin/python3: No module named pyspark",
        ),
    ],
)
def test_a_failure_is_said_in_one_line(text: str, line: str) -> None:
    assert one_line(ValueError(text)) == line


@pytest.mark.parametrize("colon", ["", ":"], ids=["Spark 3.5", "since Spark 4"])
def test_workers_of_another_python_are_said_with_what_to_do(colon: str) -> None:
    text = (
        f"Raised.\n[PYTHON_VERSION_MISMATCH] Python in worker has different version{colon} 3.12 "
        f"than that in driver{colon} 3.11, PySpark cannot run.\nPlease check"
    )
    assert one_line(ValueError(text)) == (
        "executors run Python 3.12, the driver 3.11: name one of the driver's release in "
        "PYSPARK_PYTHON or spark.pyspark.python"
    )
