"""One instance of a Kafka Streams application: a JVM of its own, driven through py4j."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from py4j.java_gateway import (
    GatewayParameters,
    JavaGateway,
    JavaObject,
    JVMView,
)
from py4j.protocol import Py4JError, Py4JJavaError

from caughtup.demo.apps.restore_listener import (
    RestoredCopy,
    compiled_restore_listener,
    listen,
    restored_copies,
)
from caughtup.demo.processes.children import Process, Processes
from caughtup.models.errors import CaughtupError
from caughtup.models.ids import ProcessId, TaskId
from caughtup.pipelines.java.command_lines import java_command
from caughtup.pipelines.java.jars import pyspark_jars
from caughtup.pipelines.java.py4j_logs import silence_py4j

HEAP_MEGABYTES = 256
_GATEWAY_SECONDS = 60.0
_CLOSE_SECONDS = 30
_POLL_SECONDS = 0.02
_Answer = TypeVar("_Answer")
# StreamsFailed reports an instance that has ended.
silence_py4j()


class StreamsFailed(CaughtupError):  # noqa: N818
    """An instance of a Streams application did not start, or does not answer."""


class StoreLag(NamedTuple):
    """The position of a store's partition in its changelog, in offsets: lag = end - position."""

    position: int
    end: int
    lag: int


class StreamThreadInfo(NamedTuple):
    """A stream thread's state and tasks; its standby tasks include warm-ups."""

    state: str
    active: tuple[TaskId, ...]
    standby: tuple[TaskId, ...]


class StreamsInstance:
    """A JVM with a KafkaStreams object."""

    def __init__(
        self,
        name: str,
        processes: Processes,
        properties: Mapping[str, str],
        build_topology: Callable[[JVMView], JavaObject],
        class_path: Sequence[Path] = (),
    ) -> None:
        """Start the JVM and the Streams client; ``build_topology`` makes a Topology in a JVM.

        ``class_path``: the classes that the application's configuration names. Raises StreamsFailed.
        """
        self.name = name
        self._state_directory = Path(properties["state.dir"]) / properties["application.id"]
        directory = processes.directory / f"{properties['application.id']}-{name}"
        directory.mkdir(exist_ok=True)
        py4j_jar = next(iter(sorted(pyspark_jars().glob("py4j-*.jar"))))
        listener = compiled_restore_listener()
        extra = (py4j_jar, listener, *class_path)
        self.process: Process = processes.start(
            directory.name,
            [
                *java_command(directory, HEAP_MEGABYTES, os.pathsep.join(map(str, extra))),
                *("py4j.GatewayServer", "--enable-auth", "0"),
            ],
        )
        self._gateway = self._connect()
        try:
            java = self._gateway.jvm
            config = java.java.util.Properties()
            for key, value in sorted(properties.items()):
                config.setProperty(key, value)
            self._topology = build_topology(java)
            self._streams = java.org.apache.kafka.streams.KafkaStreams(self._topology, config)
            self._listener = listen(java, self._streams)
            self._streams.start()
        except Py4JError as problem:
            # Made before the kill, and not chained: a Py4JJavaError's text is in the JVM.
            failure = self._failure(_first_line(problem))
            self.kill()
            raise failure from None
        except BaseException:
            self.kill()
            raise

    @property
    def state(self) -> str:
        """KafkaStreams' state, such as RUNNING or REBALANCING."""
        return str(self._ask(lambda: self._streams.state().toString()))

    @property
    def process_id(self) -> ProcessId:
        """The process id that the instance keeps in its state directory."""
        text = (self._state_directory / "kafka-streams-process-metadata").read_text()
        return ProcessId.parse(json.loads(text)["processId"])

    def lags(self) -> dict[str, dict[int, StoreLag]]:
        """Ask ``KafkaStreams.allLocalStorePartitionLags``: by store, by partition."""

        def ask() -> dict[str, dict[int, StoreLag]]:
            return {
                str(store): {
                    int(partition): StoreLag(
                        lag.currentOffsetPosition(), lag.endOffsetPosition(), lag.offsetLag()
                    )
                    for partition, lag in sorted(partitions.items())
                }
                for store, partitions in sorted(self._streams.allLocalStorePartitionLags().items())
            }

        return self._ask(ask)

    def threads(self) -> dict[str, StreamThreadInfo]:
        """Ask ``KafkaStreams.metadataForLocalThreads``: by thread name."""

        def ask() -> dict[str, StreamThreadInfo]:
            return {
                str(thread.threadName()): StreamThreadInfo(
                    str(thread.threadState()),
                    _task_ids(thread.activeTasks()),
                    _task_ids(thread.standbyTasks()),
                )
                for thread in self._streams.metadataForLocalThreads()
            }

        return dict(sorted(self._ask(ask).items()))

    def restored(self) -> tuple[RestoredCopy, ...]:
        """Return every copy that the instance has started to restore, in that order."""
        return self._ask(lambda: restored_copies(self._listener))

    def tasks_on_disk(self) -> frozenset[TaskId]:
        """Return the tasks that have a directory on the instance's disk."""
        names = (path.name for path in self._state_directory.glob("*_*") if path.is_dir())
        return frozenset(map(TaskId.parse, names))

    def topology_stores(self) -> dict[int, tuple[str, ...]]:
        """Return the state stores of each subtopology, as ``Topology.describe`` has them."""
        return self._ask(lambda: _stores(self._topology))

    def close(self) -> None:
        """Close the Streams client, leaving its group, and end the JVM."""

        def leave() -> None:
            java = self._gateway.jvm
            options = java.org.apache.kafka.streams.CloseOptions
            leaving = options.GroupMembershipOperation.LEAVE_GROUP
            timeout = java.java.time.Duration.ofSeconds(_CLOSE_SECONDS)
            self._streams.close(options.groupMembershipOperation(leaving).withTimeout(timeout))

        try:
            self._ask(leave)
        finally:
            self._disconnect()
            self.process.terminate()

    def kill(self) -> None:
        """End the JVM with SIGKILL."""
        self._disconnect()
        self.process.kill()

    def _disconnect(self) -> None:
        # Otherwise each Java object that Python frees later would try to reach the dead JVM.
        self._gateway._gateway_client.is_connected = False
        self._gateway.close()

    def _connect(self) -> JavaGateway:
        # The gateway prints its port and its password before anything else.
        deadline = time.monotonic() + _GATEWAY_SECONDS
        while len(printed := self.process.output().splitlines()) < 2:
            if self.process.exit_code is not None or time.monotonic() > deadline:
                self.process.kill()
                raise self._failure(self.process.first_error())
            time.sleep(_POLL_SECONDS)
        port, token = printed[:2]
        return JavaGateway(gateway_parameters=GatewayParameters(port=int(port), auth_token=token))

    def _ask(self, question: Callable[[], _Answer]) -> _Answer:
        try:
            return question()
        except (Py4JError, OSError) as problem:
            raise self._failure(_first_line(problem)) from None

    def _failure(self, why: str) -> StreamsFailed:
        return StreamsFailed("streams_failed", f"instance {self.name}: {why}")


def _first_line(problem: Exception) -> str:
    if isinstance(problem, Py4JJavaError):
        return str(problem.java_exception.toString()).partition("\n")[0]
    return str(problem).partition("\n")[0] or type(problem).__name__


def _task_ids(tasks: Iterable[JavaObject]) -> tuple[TaskId, ...]:
    return tuple(sorted(TaskId.parse(str(task.taskId().toString())) for task in tasks))


def _stores(topology: JavaObject) -> dict[int, tuple[str, ...]]:
    """Read ``Topology.describe``: subtopology to the stores of its processors."""
    found: dict[int, set[str]] = {}
    for subtopology in topology.describe().subtopologies():
        stores = found.setdefault(int(subtopology.id()), set())
        for node in subtopology.nodes():
            # Sources and sinks have none.
            if node.getClass().getSimpleName() == "Processor":
                stores.update(str(store) for store in node.stores())
    return {number: tuple(sorted(stores)) for number, stores in sorted(found.items())}
