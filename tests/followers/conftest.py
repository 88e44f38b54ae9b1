"""The follower's classes, compiled once, alone and in a Kafka Streams application."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from caughtup.demo.java.find import find_java
from caughtup.demo.java.jars import classpath
from caughtup.followers.kafka_streams.jar import build_jar

JAVA_SOURCES = sorted((Path(__file__).parent / "java").glob("*.java"))
COMPILER = "org.eclipse.jdt.internal.compiler.batch.Main"


@pytest.fixture(scope="session")
def follower_jar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``caughtup-follower.jar``, as anybody would build it."""
    return build_jar(tmp_path_factory.mktemp("follower") / "caughtup-follower.jar")


class FollowerOracle:
    """The follower's classes in a JVM of their own: a question in, an answer out."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the follower's JVM ended with {self._process.wait()}"
        answer: dict[str, Any] = json.loads(line)
        return answer


@pytest.fixture(scope="session")
def follower_oracle(
    follower_jar: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FollowerOracle]:
    """The follower behind a pipe, with states that are made up for it."""
    java = str(find_java().program)
    classes = tmp_path_factory.mktemp("follower-oracle")
    path = os.pathsep.join((classpath(), str(follower_jar)))
    compiling = [java, "-cp", classpath(), COMPILER, "-17", "-cp", path, "-d", str(classes)]
    subprocess.run([*compiling, *map(str, JAVA_SOURCES)], check=True)
    command = [java, "-Dorg.apache.logging.log4j.level=OFF", "-cp"]
    command += [os.pathsep.join((path, str(classes))), "caughtup.FollowerOracle"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        yield FollowerOracle(process)
        assert process.stdin is not None
        process.stdin.close()
        process.wait(timeout=30)
