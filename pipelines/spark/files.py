"""Access files at any URI that Hadoop supports (file, hdfs, s3a …), through the driver's JVM."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from caughtup.models.errors import CaughtupError
from caughtup.pipelines.spark.session import one_line


class Files:
    """The file operations of the jobs. Paths are URIs or plain paths."""

    def __init__(self, spark: SparkSession) -> None:
        jvm = spark._jvm
        assert jvm is not None
        self._path = jvm.org.apache.hadoop.fs.Path
        self._io = jvm.org.apache.hadoop.io.IOUtils
        self._bytes = jvm.java.io.ByteArrayOutputStream
        self._conf = spark._jsparkSession.sessionState().newHadoopConf()

    def exists(self, path: str) -> bool:
        """Return whether a file or directory exists."""
        system, at = self._at(path)
        return bool(system.exists(at))

    def names(self, path: str) -> list[str]:
        """Return the sorted names in a directory; empty if it does not exist."""
        system, at = self._at(path)
        if not system.exists(at):
            return []
        return sorted(str(status.getPath().getName()) for status in system.listStatus(at))

    def read(self, path: str) -> bytes:
        """Read a small file."""
        system, at = self._at(path)
        source, copy = system.open(at), self._bytes()
        self._io.copyBytes(source, copy, 4096, True)
        return bytes(copy.toByteArray())

    def write(self, path: str, content: bytes) -> None:
        """Write a small file atomically, unless it exists already.

        Raises CaughtupError ``output_unwritable``.
        """
        system, at = self._at(path)
        aside = self._path(at.getParent(), f"_{at.getName()}.new")
        stream = system.create(aside, True)
        stream.write(content)
        stream.close()
        if not system.exists(at) and not system.rename(aside, at):
            raise CaughtupError("output_unwritable", f"can't write {path}")

    def check_writable(self, path: str) -> None:
        """Check now that a directory can be written; Spark would fail only after the first batch.

        Raises CaughtupError ``output_unwritable``.
        """
        try:
            system, at = self._at(path)
            probe = self._path(at, "_caughtup_probe")
            system.create(probe, True).close()
            system.delete(probe, False)
        except Py4JError as error:
            raise CaughtupError(
                "output_unwritable", f"can't write {path}: {one_line(error)}"
            ) from error

    def _at(self, path: str) -> tuple[Any, Any]:
        at = self._path(path)
        return at.getFileSystem(self._conf), at
