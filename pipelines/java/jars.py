"""The jars of Kafka and of Spark's Kafka connector, fetched once and kept."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from caughtup.pipelines.java import ivy
from caughtup.pipelines.java.ivy import Coordinate, JarsUnavailable

KAFKA_VERSION = "4.3.1"
KAFKA = (
    f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}",
    f"org.apache.kafka:kafka-streams:{KAFKA_VERSION}",
    f"org.apache.kafka:kafka-clients:{KAFKA_VERSION}",
    # The logging library of Kafka's distribution, at the revision that its broker asks for.
    "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4",
    "org.eclipse.jdt:ecj:3.38.0",
)
CONNECT = (
    f"org.apache.kafka:connect-runtime:{KAFKA_VERSION}",
    # The file connectors, which Kafka's distribution has too.
    f"org.apache.kafka:connect-file:{KAFKA_VERSION}",
)
SPARK_KAFKA = ("org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0",)
# PySpark ships these: a second copy on Spark's class path would cost 60 MB, and may conflict.
SHIPPED_WITH_PYSPARK = (
    "com.google.code.findbugs",
    "org.apache.hadoop",
    "org.apache.spark:spark-tags_2.13",
    "org.lz4",
    "org.scala-lang",
    "org.scala-lang.modules",
    "org.slf4j",
    "org.xerial.snappy",
)
_MARKER = "complete.json"


def cache_directory() -> Path:
    """Return where fetched jars are kept: ``$CAUGHTUP_CACHE``, or ``~/.cache/caughtup``."""
    chosen = os.environ.get("CAUGHTUP_CACHE")
    return Path(chosen).expanduser().absolute() if chosen else Path.home() / ".cache" / "caughtup"


def ensure_jars() -> Path:
    """Return the directory of Kafka's jars, fetching them first if need be (120 MB, once).

    Raises JarsUnavailable or JavaMissing.
    """
    return fetch_jars("kafka", KAFKA)


def connect_classpath() -> str:
    """Return Kafka's jars and Connect's as a Java class path, fetching them first if need be.

    Connect's are 35 MB. Raises JarsUnavailable or JavaMissing.
    """
    jars = sorted(fetch_jars("kafka-connect", CONNECT).glob("*.jar"))
    return os.pathsep.join((classpath(), *map(str, jars)))


def ensure_spark_jars() -> Path:
    """Return the directory of the jars that PySpark lacks to read Kafka, fetching them if need be.

    They fit PySpark 4.0.0. Raises JarsUnavailable or JavaMissing.
    """
    return fetch_jars("spark-kafka", SPARK_KAFKA, SHIPPED_WITH_PYSPARK)


def classpath() -> str:
    """Return Kafka's jars as a Java class path, fetching them first if need be."""
    return os.pathsep.join(map(str, sorted(ensure_jars().glob("*.jar"))))


def fetch_jars(name: str, coordinates: Sequence[str], without: Sequence[str] = ()) -> Path:
    """Return the directory of the coordinates' jars and their dependencies, fetched if need be.

    ``coordinates`` are ``organisation:name:revision``; ``without`` names organisations, or
    ``organisation:name``, to leave out. The directory is named after ``name`` and a digest of the
    rest, so that other revisions get another one. Any number of processes may call this at once:
    one fetches, the others wait. Raises JarsUnavailable or JavaMissing.
    """
    wanted = [Coordinate.parse(text) for text in coordinates]
    digest = hashlib.sha256(json.dumps([*map(str, wanted), "", *without]).encode()).hexdigest()
    directory = cache_directory() / f"{name}-{digest[:12]}"
    if _is_complete(directory):
        return directory
    with _locked(directory.with_suffix(".lock")):
        if not _is_complete(directory):
            _fetch(name, wanted, without, directory)
    return directory


def _fetch(
    name: str, coordinates: Sequence[Coordinate], without: Sequence[str], directory: Path
) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    ivy_cache = directory.with_suffix(".ivy")
    # Renamed when complete, so that the directory is never seen half full.
    with tempfile.TemporaryDirectory(prefix=f"{name}-", dir=directory.parent) as temporary:
        coming = Path(temporary, "jars")
        with _progress(name, directory) as on_progress:
            ivy.retrieve(coordinates, without, coming, ivy_cache, on_progress)
        sizes = {path.name: path.stat().st_size for path in sorted(coming.glob("*.jar"))}
        missing = [one for one in coordinates if f"{one.name}-{one.revision}.jar" not in sizes]
        if missing:
            raise JarsUnavailable("jars_unavailable", f"no jar came for {missing[0]}")
        (coming / _MARKER).write_text(json.dumps(sizes, indent=1))
        coming.rename(directory)
    # Only now, so that an interrupted retrieval need not fetch everything again.
    shutil.rmtree(ivy_cache, ignore_errors=True)


def _is_complete(directory: Path) -> bool:
    try:
        sizes = json.loads((directory / _MARKER).read_text())
        return all((directory / jar).stat().st_size == size for jar, size in sizes.items())
    except (OSError, ValueError, AttributeError):
        return False


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = path.open("w")
    except OSError as problem:
        raise JarsUnavailable(
            "cache_not_writable",
            f"cannot write {path.parent}: {problem.strerror}; set CAUGHTUP_CACHE to a directory",
        ) from problem
    with lock:
        # The kernel releases the lock when its holder dies, however it dies.
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def _progress(name: str, directory: Path) -> Iterator[Callable[[ivy.RetrievalProgress], None]]:
    console = Console(stderr=True)
    if not console.is_terminal:
        console.print(f"Fetching the {name} jars into {directory}, once.", soft_wrap=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(f"Looking for the {name} jars", total=None)

        def show(progress: ivy.RetrievalProgress) -> None:
            if progress.fetched:
                words = f"Fetching the {name} jars"
                bar.update(
                    task, description=words, total=progress.found, completed=progress.fetched
                )
            else:
                bar.update(task, completed=progress.found)

        yield show
