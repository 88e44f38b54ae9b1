"""Kafka's own task assignors, from the published jars, with a stopwatch."""

from __future__ import annotations

import os
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from caughtup.demo.java.compiling import compiler_command
from caughtup.demo.java.find import find_java
from caughtup.demo.java.jars import classpath
from caughtup.demo.processes.closing import ClosedOnExit
from caughtup.models.errors import CaughtupError

_SOURCE = Path(__file__).parent / "java" / "TimedAssignor.java"
_OPTIONS = ("-XX:-UsePerfData", "-Dorg.apache.logging.log4j.level=OFF")


class Timed(NamedTuple):
    """A decision as ``caughtup assign`` prints it, without warm-ups, and what it took.

    Milliseconds by the clock, and of the deciding thread on a processor.
    """

    milliseconds: float
    cpu_milliseconds: float
    decision: dict[str, Any]


class PublishedAssignor(ClosedOnExit):
    """The assignors of Kafka 4.3.1 in a JVM of their own, which stays warm between decisions.

    Raises CaughtupError: JarsUnavailable, JavaMissing, or ``java_failed`` with the JVM's reason.
    """

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="caughtup-assignor-")
        java = os.fspath(find_java().program)
        jars = classpath()
        self._errors = Path(self._directory.name, "errors.log")
        with self._errors.open("wb") as errors:
            compiling = compiler_command([_SOURCE], Path(self._directory.name))
            if subprocess.run(compiling, stdout=errors, stderr=errors, check=False).returncode:
                raise self._failure()
            everything = os.pathsep.join((jars, self._directory.name))
            # It ends when its standard input does, however this process comes to its end.
            self._process = subprocess.Popen(
                [java, *_OPTIONS, "-cp", everything, _SOURCE.stem],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            )

    def load(self, scenario: dict[str, Any]) -> None:
        """Load a scenario without racks and client tags, in the format of ``caughtup assign``."""
        self._ask(msgspec.json.encode(scenario))

    def decide(self) -> Timed:
        """Decide the scenario that was loaded last."""
        answer = msgspec.json.decode(self._ask(b"decide"))
        return Timed(answer["ms"], answer["cpu_ms"], answer["decision"])

    def close(self) -> None:
        """End the JVM; does nothing the second time."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
        self._directory.cleanup()

    def _ask(self, line: bytes) -> bytes:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(line + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._failure() from None
        answer = self._process.stdout.readline()
        if not answer:
            raise self._failure()
        return answer

    def _failure(self) -> CaughtupError:
        written = self._errors.read_text(errors="replace").splitlines()
        reason = next(
            (line for line in written if "rror" in line or "xception" in line), "it ended"
        )
        return CaughtupError("java_failed", f"Kafka's assignor failed: {reason.strip()}")
