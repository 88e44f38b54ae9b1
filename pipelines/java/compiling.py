"""The Java compiler's command line: Eclipse's, since a Java runtime has none."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from caughtup.pipelines.java.command_lines import QUICK_START
from caughtup.pipelines.java.find import find_java
from caughtup.pipelines.java.jars import classpath

_COMPILER = "org.eclipse.jdt.internal.compiler.batch.Main"


def compiler_command(
    sources: Iterable[Path], directory: Path, *, release: int = 17, against: str | None = None
) -> list[str]:
    """Return the command that compiles sources for a Java release into a directory.

    ``against`` is a class path, Kafka's published jars by default. Raises JavaMissing or
    JarsUnavailable.
    """
    jars = classpath()
    return [
        *(os.fspath(find_java().program), *QUICK_START, "-cp", jars, _COMPILER),
        *(f"-{release}", "-nowarn", "-encoding", "UTF-8"),
        *("-cp", jars if against is None else against, "-d", os.fspath(directory)),
        *map(os.fspath, sources),
    ]
