"""Files at any URI that Hadoop knows (file, hdfs, s3a …), through the driver's JVM."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from caughtup.models.errors import CaughtupError
from caughtup.pipelines.spark.session import one_line


class Files:
    """What the jobs do to files themselves, and Spark doesn't. Paths are URIs or plain paths."""

    def __init__(self, spark: SparkSession) -> None:
        jvm = spark._jvm
        assert jvm is not None
        self._path = jvm.org.apache.hadoop.fs.Path
        self._io = jvm.org.apache.hadoop.io.IOUtils
        self._bytes = jvm.java.io.ByteArrayOutputStream
        self._conf = spark._jsparkSession.sessionState().newHadoopConf()

    def exists(self, path: str) -> bool:
        """Return whether there is a file or directory."""
        system, at = self._at(path)
        return bool(system.exists(at))

    def names(self, path: str) -> list[str]:
        """Name what is in a directory, in order; nothing where there is none."""
        system, at = self._at(path)
        if not system.exists(at):
            return []
        return sorted(str(status.getPath().getName()) for status in system.listStatus(at))

    def walk(self, path: str, ending: str) -> dict[str, list[str]]:
        """Name the files below a directory, by the folder they are in, relative to it."""
        system, at = self._at(path)
        found: dict[str, list[str]] = {}
        if not system.exists(at):
            return found
        top = str(system.makeQualified(at).toUri().getPath()).rstrip("/") + "/"
        listed = system.listFiles(at, True)
        while listed.hasNext():
            file = listed.next().getPath()
            if str(file.getName()).endswith(ending):
                folder = str(file.getParent().toUri().getPath())
                found.setdefault(folder.removeprefix(top), []).append(str(file.getName()))
        return found

    def put(self, source: str, target: str) -> bool:
        """Move a file or directory to where none is yet; tell whether there was none.

        What is at the target stays. Raises CaughtupError ``output_unwritable``.
        """
        system, there = self._at(target)
        if system.exists(there):
            return False
        system.mkdirs(there.getParent())
        if not system.rename(self._at(source)[1], there):
            raise CaughtupError("output_unwritable", f"can't rename {source} to {target}")
        return True

    def delete(self, path: str) -> None:
        """Remove a file, or a directory with all that is in it."""
        system, at = self._at(path)
        system.delete(at, True)

    def read(self, path: str) -> bytes:
        """Read a small file."""
        system, at = self._at(path)
        source, copy = system.open(at), self._bytes()
        self._io.copyBytes(source, copy, 4096, True)
        return bytes(copy.toByteArray())

    def write(self, path: str, content: bytes) -> None:
        """Write a small file where none is yet: whole, or not at all."""
        system, at = self._at(path)
        aside = self._path(at.getParent(), f"_{at.getName()}.new")
        stream = system.create(aside, True)
        stream.write(content)
        stream.close()
        self.put(str(aside.toString()), path)

    def check_writable(self, path: str) -> None:
        """Make a directory now: Spark would find out only after its first batch's work.

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
