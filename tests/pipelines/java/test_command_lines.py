"""Java's command lines: classes that were dumped are taken, and never cost anything."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from caughtup.pipelines.java import command_lines
from caughtup.pipelines.java.command_lines import class_archive, java_command


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "classes.jsa"
    monkeypatch.setattr(command_lines, "class_archive", lambda: path)
    return path


def test_without_a_dump_java_is_told_of_none(archive: Path, tmp_path: Path) -> None:
    _, arguments = java_command(tmp_path, 64)
    assert "SharedArchiveFile" not in Path(arguments.removeprefix("@")).read_text()


def test_a_dump_that_is_none_is_passed_over_in_silence(archive: Path, tmp_path: Path) -> None:
    archive.write_bytes(b"of another Java" * 1_000)
    java, arguments = java_command(tmp_path, 64)
    assert str(archive) in Path(arguments.removeprefix("@")).read_text()
    command = [java, arguments, "org.apache.kafka.common.utils.AppInfoParser"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert "archive" not in ran.stdout + ran.stderr
    assert "Main method not found" in ran.stderr, "it got as far as Kafka's class"


def test_a_dump_is_of_the_jars_and_of_one_release_of_java() -> None:
    assert list(class_archive().parent.glob("kafka-server-*.jar"))
    assert class_archive().suffix == ".jsa"
