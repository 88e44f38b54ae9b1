"""Run and time Kafka's own assignors from the published jars."""

from __future__ import annotations

import os
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from caughtup.demo.processes.children import ClosedOnExit
from caughtup.models.errors import CaughtupError
from caughtup.pipelines.java.compiling import compiled_java
from caughtup.pipelines.java.find import find_java
from caughtup.pipelines.java.jars import classpath, connect_classpath

_SOURCES = Path(__file__).parent / "java"


class TimedDecision(NamedTuple):
    """A decision as ``caughtup assign`` prints it, without warm-ups, with its time.

    Wall-clock ms, and CPU ms of the deciding thread.
    """

    milliseconds: float
    cpu_milliseconds: float
    decision: dict[str, Any]


class PublishedAssignor(ClosedOnExit):
    """The task assignors of Kafka 4.3.1 in a JVM that stays warm between decisions.

    Raises CaughtupError: JarsUnavailable, JavaMissing, or ``java_failed`` with the JVM's reason.
    """

    name = "TimedAssignor"
    package = ""
    #: The JVM's. By default it compiles for speed, since it is timed.
    options: tuple[str, ...] = ("-XX:-UsePerfData", "-Dorg.apache.logging.log4j.level=OFF")
    #: Returns the class path, fetching jars first if need be.
    jars = staticmethod(classpath)

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="caughtup-assignor-")
        java = os.fspath(find_java().program)
        jars = self.jars()
        self._errors = Path(self._directory.name, "errors.log")
        with self._errors.open("wb") as errors:
            sources = [_SOURCES / f"{name}.java" for name in ("TimedPipe", self.name)]
            classes = compiled_java("assignor", sources, against=jars)
            everything = os.pathsep.join((jars, os.fspath(classes)))
            # It ends when its standard input does, however this process ends.
            self._process = subprocess.Popen(
                [java, *self.options, "-cp", everything, self.package + self.name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            )

    def load(self, scenario: dict[str, object]) -> None:
        """Load a scenario in the format of ``caughtup assign``, without racks and client tags."""
        self._ask(msgspec.json.encode(scenario))

    def decide(self) -> TimedDecision:
        """Decide the scenario that was loaded last.

        Raises CaughtupError ``assignor_fails`` if a consumer group's assignor throws.
        """
        answer = msgspec.json.decode(self._ask(b"decide"))
        if "exception" in answer:
            raise CaughtupError("assignor_fails", answer["exception"])
        return TimedDecision(answer["ms"], answer["cpu_ms"], answer["decision"])

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


class PublishedConnectLeader(PublishedAssignor):
    """Connect's IncrementalCooperativeAssignor in such a JVM.

    It loads ``rounds``, whose workers have ``connectors`` and ``tasks``, and decides the last one.
    """

    name = "TimedConnectLeader"
    package = "org.apache.kafka.connect.runtime.distributed."
    jars = staticmethod(connect_classpath)


class PublishedConsumerAssignor(PublishedAssignor):
    """The assignors of the clients and of the group coordinator in such a JVM.

    It loads a consumer group in the format of ``caughtup assign``.
    """

    name = "TimedConsumerGroup"
    package = "caughtup."
