"""Run the Apache Ivy that PySpark ships, to fetch jars at exact revisions."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from caughtup.models.errors import CaughtupError
from caughtup.pipelines.extras import install_command
from caughtup.pipelines.java.find import find_java

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
        "-XX:-UsePerfData",  # otherwise it leaves a directory in /tmp
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
