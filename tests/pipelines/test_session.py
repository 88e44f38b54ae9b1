"""Starting Spark, and what is said when it can't."""

from __future__ import annotations

from pathlib import Path

import pytest

from caughtup.models.errors import CaughtupError
from caughtup.pipelines.session import one_line, spark_session


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
    [("first\n\tat second", "first"), ("\n  \n first", "first"), ("", "ValueError")],
)
def test_a_failure_is_said_in_one_line(text: str, line: str) -> None:
    assert one_line(ValueError(text)) == line
