"""Java test classes behind a pipe: a line of JSON in, a line of JSON out."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from caughtup.followers.kafka_streams.jar import NAME, SOURCES, build_jar
from caughtup.pipelines.java import compiling
from caughtup.pipelines.java.command_lines import quick_start
from caughtup.pipelines.java.find import find_java
from caughtup.pipelines.java.jars import classpath

_PIPE = Path(__file__).with_name("java") / "Pipe.java"
_QUIET = "-Dorg.apache.logging.log4j.level=OFF"


class Oracle:
    """A Java class in its own JVM, which answers questions."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """Return the class's answer to one question."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the oracle's JVM ended with {self._process.wait()}"
        answer: dict[str, Any] = json.loads(line)
        return answer


def compiled_java(sources: Sequence[Path], *jars: Path, kafka: str | None = None) -> Path:
    """Return the classes of sources and of the pipe.

    They are compiled against Kafka's jars (``kafka``: their class path) and others.
    """
    path = os.pathsep.join((kafka or classpath(), *map(str, jars)))
    return compiling.compiled_java("test", [_PIPE, *sources], against=path)


def follower_jar() -> Path:
    """Return ``caughtup-follower.jar``, built as by users and kept like classes."""
    made_of = [one.read_bytes() for one in sorted(SOURCES.iterdir()) if one.is_file()]
    return compiling.kept("test-follower", made_of, lambda into: build_jar(into / NAME)) / NAME


@contextmanager
def running_oracle(name: str, *path: Path, kafka: str | None = None) -> Iterator[Oracle]:
    """Run a class with Kafka's jars and others on its class path inside the context."""
    whole = os.pathsep.join((kafka or classpath(), *map(str, path)))
    command = [str(find_java().program), *quick_start(), _QUIET, "-cp", whole, name]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        yield Oracle(process)
        # It ends when its standard input does.
        assert process.stdin is not None
        process.stdin.close()
        process.wait(timeout=30)
