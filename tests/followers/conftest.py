"""The follower's classes, compiled once, alone and in a Kafka Streams application."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from caughtup.demo.java.find import find_java
from caughtup.demo.java.jars import classpath, fetch_jars
from caughtup.followers.kafka_streams.jar import build_jar

JAVA_SOURCES = sorted((Path(__file__).parent / "java").glob("*.java"))
#: The first that has KIP-924; what it calls native code for isn't needed to decide.
OLDEST_STREAMS = "org.apache.kafka:kafka-streams:3.8.0"
NOT_CALLED = ("org.rocksdb", "com.github.luben", "org.lz4", "org.xerial.snappy")
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
    with start_oracle(classpath(), follower_jar, tmp_path_factory.mktemp("oracle")) as oracle:
        yield oracle


@pytest.fixture(scope="session")
def oldest_oracle(
    follower_jar: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FollowerOracle]:
    """The same jar on the oldest Kafka Streams that it is for, with the Jackson that comes with it."""
    jars = fetch_jars("oldest-streams", [OLDEST_STREAMS], NOT_CALLED)
    path = os.pathsep.join(map(str, sorted(jars.glob("*.jar"))))
    with start_oracle(path, follower_jar, tmp_path_factory.mktemp("oldest-oracle")) as oracle:
        yield oracle


@contextmanager
def start_oracle(class_path: str, follower: Path, classes: Path) -> Iterator[FollowerOracle]:
    """Compile the oracle against the jars of a class path, and run it on them."""
    java = str(find_java().program)
    path = os.pathsep.join((class_path, str(follower)))
    compiling = [java, "-cp", classpath(), COMPILER, "-17", "-nowarn", "-cp", path]
    subprocess.run([*compiling, "-d", str(classes), *map(str, JAVA_SOURCES)], check=True)
    command = [java, "-Dorg.apache.logging.log4j.level=OFF", "-cp"]
    command += [os.pathsep.join((path, str(classes))), "caughtup.FollowerOracle"]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    ) as process:
        yield FollowerOracle(process)
        assert process.stdin is not None
        process.stdin.close()
        process.wait(timeout=30)
