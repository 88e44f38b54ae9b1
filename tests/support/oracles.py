"""Java test classes behind a pipe: a line of JSON in, a line of JSON out."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from caughtup.followers.kafka_streams.jar import NAME, SOURCES, build_jar
from caughtup.pipelines.java.command_lines import QUICK_START, compiler_command
from caughtup.pipelines.java.find import find_java
from caughtup.pipelines.java.jars import cache_directory, classpath

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
    """Return the classes of sources and of the pipe, compiled once and kept beside Kafka's jars.

    They are compiled against Kafka's jars (``kafka``: their class path) and others. The first
    worker that needs them compiles; the directory's name has a digest of their sources.
    """
    everything = [_PIPE, *sources]
    path = os.pathsep.join((kafka or classpath(), *map(str, jars)))
    made_of = (kafka or classpath(), *(one.read_bytes() for one in (*everything, *jars)))

    def compile_into(directory: Path) -> None:
        subprocess.run(compiler_command(everything, directory, against=path), check=True)

    return kept("test-classes", made_of, compile_into)


def follower_jar() -> Path:
    """Return ``caughtup-follower.jar``, built as by users and kept like classes."""
    made_of = [one.read_bytes() for one in sorted(SOURCES.iterdir()) if one.is_file()]
    return kept("test-follower", made_of, lambda into: build_jar(into / NAME)) / NAME


def kept(name: str, made_of: Iterable[str | bytes], make: Callable[[Path], object]) -> Path:
    """Return a directory that ``make`` fills once for this content, whoever asks first."""
    digest = hashlib.sha256()
    for part in made_of:
        digest.update(hashlib.sha256(part if isinstance(part, bytes) else part.encode()).digest())
    directory = cache_directory() / f"{name}-{digest.hexdigest()[:16]}"
    with directory.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not directory.exists():
            with tempfile.TemporaryDirectory(prefix=f"{name}-", dir=directory.parent) as making:
                make(coming := Path(making, "whole"))
                coming.rename(directory)
    return directory


@contextmanager
def running_oracle(name: str, *path: Path, kafka: str | None = None) -> Iterator[Oracle]:
    """Run a class with Kafka's jars and others on its class path inside the context."""
    whole = os.pathsep.join((kafka or classpath(), *map(str, path)))
    command = [str(find_java().program), *QUICK_START, _QUIET, "-cp", whole, name]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        yield Oracle(process)
        # It ends when its standard input does.
        assert process.stdin is not None
        process.stdin.close()
        process.wait(timeout=30)
