"""The jars of Kafka and of Spark's Kafka connector: fetched once, with PySpark's Ivy, and kept."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from caughtup.models.errors import CaughtupError
from caughtup.pipelines.extras import install_command
from caughtup.pipelines.java.find import QUICK_START, find_java

# The lines in which Ivy 2.5 names a cause, the most telling first.
_TROUBLES = (
    re.compile(r"Server access error at url \S+ \((.+)\)"),
    re.compile(r"(Host .+ not found)\b.*"),
    re.compile(r"(module not found: .+)"),
    re.compile(r"\[FAILED\s*\] (.+)"),
)


class JarsUnavailable(CaughtupError):  # noqa: N818
    """Jars could not be fetched."""


class Coordinate(NamedTuple):
    """A published module: ``org.apache.kafka:kafka-clients:4.3.1``."""

    organisation: str
    name: str
    revision: str

    @classmethod
    def parse(cls, text: str) -> Coordinate:
        """Read ``organisation:name:revision``. Raises CaughtupError ``bad_coordinate``."""
        parts = text.split(":")
        if len(parts) != 3 or not all(parts):
            raise CaughtupError(
                "bad_coordinate", f"{text!r} is not a coordinate such as org.apache.kafka:name:1.0"
            )
        return cls(*parts)

    def __str__(self) -> str:
        return ":".join(self)


class RetrievalProgress(NamedTuple):
    """The progress of a retrieval: modules found in the tree so far, and files fetched."""

    found: int
    fetched: int


def retrieve(
    coordinates: Sequence[Coordinate],
    without: Sequence[str],
    into: Path,
    cache: Path,
    on_progress: Callable[[RetrievalProgress], None],
) -> None:
    """Download the coordinates' jars, and their run-time dependencies, into a directory.

    ``without`` names organisations, or ``organisation:name``, to leave out of the tree. ``cache``
    is Ivy's own working directory, from which an interrupted retrieval continues. Raises
    JarsUnavailable with Ivy's reason, or JavaMissing.
    """
    cache.mkdir(parents=True, exist_ok=True)
    module = cache / "ivy.xml"
    module.write_text(module_descriptor(coordinates, without))
    command = [
        os.fspath(find_java().program),
        *QUICK_START,
        # Ivy's home would otherwise be ~/.ivy2, which has local modules of other builds.
        f"-Divy.default.ivy.user.dir={cache}",
        "-jar",
        os.fspath(ivy_jar()),
        *("-ivy", os.fspath(module)),
        *("-confs", "default"),
        *("-types", "jar", "bundle"),
        *("-cache", os.fspath(cache)),
        *("-retrieve", os.fspath(into / "[artifact]-[revision](-[classifier]).[ext]")),
    ]
    reason = _run(command, on_progress)
    if reason is not None:
        raise JarsUnavailable("jars_unavailable", f"cannot fetch {coordinates[0]}: {reason}")


def module_descriptor(coordinates: Sequence[Coordinate], without: Sequence[str]) -> str:
    """Return the ``ivy.xml`` of a module that depends on the coordinates."""
    root = ElementTree.Element("ivy-module", version="2.0")
    ElementTree.SubElement(root, "info", organisation="caughtup", module="jars")
    ElementTree.SubElement(ElementTree.SubElement(root, "configurations"), "conf", name="default")
    dependencies = ElementTree.SubElement(root, "dependencies")
    for coordinate in coordinates:
        ElementTree.SubElement(
            dependencies,
            "dependency",
            org=coordinate.organisation,
            name=coordinate.name,
            rev=coordinate.revision,
            conf="default->default",
        )
    for left_out in without:
        organisation, _, name = left_out.partition(":")
        ElementTree.SubElement(dependencies, "exclude", org=organisation, module=name or "*")
    return ElementTree.tostring(root, encoding="unicode")


def pyspark_jars() -> Path:
    """Return the directory of the jars that PySpark ships, with Ivy's. Raises JarsUnavailable.

    PySpark is located without an import, which takes a second.
    """
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise JarsUnavailable(
            "pyspark_missing", f"PySpark is not installed; type: {install_command('spark')}"
        )
    return Path(spec.origin).parent / "jars"


def ivy_jar() -> Path:
    """Return the Ivy jar that PySpark ships. Raises JarsUnavailable."""
    jars = sorted(pyspark_jars().glob("ivy-*.jar"))
    if not jars:
        raise JarsUnavailable("ivy_missing", f"no ivy-*.jar in {pyspark_jars()}")
    return jars[-1]


def _run(command: list[str], on_progress: Callable[[RetrievalProgress], None]) -> str | None:
    """Run Ivy; return None if it succeeds, otherwise the reason in one line."""
    found: set[str] = set()
    fetched = 0
    trouble: list[tuple[int, str]] = []
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        try:
            assert process.stdout is not None
            for line in map(str.strip, process.stdout):
                if line.startswith("found "):
                    found.add(line.split()[1])
                elif line.startswith("[SUCCESSFUL"):
                    fetched += 1
                trouble += [
                    (rank, match[1])
                    for rank, pattern in enumerate(_TROUBLES)
                    if (match := pattern.fullmatch(line))
                ]
                on_progress(RetrievalProgress(len(found), fetched))
        except BaseException:
            process.kill()
            raise
    if process.returncode == 0:
        return None
    if not trouble:
        return f"Ivy ended with exit code {process.returncode}"
    return min(trouble, key=lambda ranked: ranked[0])[1]


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
# PySpark ships these: a second copy on Spark's class path would cost 60 MB, and may conflict.
SHIPPED_WITH_PYSPARK = (
    "at.yawk.lz4",
    "com.google.code.findbugs",
    "org.apache.hadoop",
    "org.apache.spark:spark-tags_2.12",
    "org.apache.spark:spark-tags_2.13",
    "org.lz4",
    "org.scala-lang",
    "org.scala-lang.modules",
    "org.slf4j",
    "org.xerial.snappy",
)
_CORE = re.compile(r"spark-core_(?P<scala>[\d.]+)-(?P<spark>.+)")
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

    They fit the PySpark that is installed. Raises JarsUnavailable or JavaMissing.
    """
    return fetch_jars("spark-kafka", [spark_connector()], SHIPPED_WITH_PYSPARK)


def spark_connector() -> str:
    """Return the coordinate of Spark's Kafka connector for the PySpark that is installed.

    Releases of Spark are built for different ones of Scala, whose classes don't fit together.
    Raises JarsUnavailable.
    """
    cores = sorted(pyspark_jars().glob("spark-core_*.jar"))
    match = _CORE.fullmatch(cores[-1].stem) if cores else None
    if match is None:
        raise JarsUnavailable("pyspark_incomplete", f"no spark-core_*.jar in {pyspark_jars()}")
    return connector_of(match["spark"], match["scala"])


def connector_of(spark: str, scala: str) -> str:
    """Return the coordinate of the Kafka connector of a release of Spark, built for ``scala``."""
    return f"org.apache.spark:spark-sql-kafka-0-10_{scala}:{spark}"


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
            retrieve(coordinates, without, coming, ivy_cache, on_progress)
        sizes = {path.name: path.stat().st_size for path in sorted(coming.glob("*.jar"))}
        missing = [one for one in coordinates if f"{one.name}-{one.revision}.jar" not in sizes]
        if missing:
            raise JarsUnavailable("jars_unavailable", f"Ivy delivered no jar for {missing[0]}")
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
def _progress(name: str, directory: Path) -> Iterator[Callable[[RetrievalProgress], None]]:
    # Here, since Spark's executors import this module, and have no rich.
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

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

        def show(progress: RetrievalProgress) -> None:
            if progress.fetched:
                words = f"Fetching the {name} jars"
                bar.update(
                    task, description=words, total=progress.found, completed=progress.fetched
                )
            else:
                bar.update(task, completed=progress.found)

        yield show
