"""Compile Java classes that an application needs in addition to Kafka's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from caughtup.demo.processes.children import Processes
from caughtup.models.errors import CaughtupError
from caughtup.pipelines.java.command_lines import compiler_command


def compiled(processes: Processes, name: str, sources: Sequence[Path]) -> Path:
    """Compile sources into a directory below the processes', unless it has classes; return it.

    The compiler is one of ``processes``, and ends with them. Raises CaughtupError: JarsUnavailable,
    JavaMissing, or ``not_compiled`` with the first error.
    """
    directory = processes.directory / name
    if any(directory.rglob("*.class")):
        return directory
    compiler = processes.start(f"{name}-compiler", compiler_command(sources, directory))
    if compiler.wait():
        lines = [line.strip() for line in compiler.output().splitlines()]
        first = next((line for line in lines if "ERROR in" in line), "the compiler failed")
        raise CaughtupError("not_compiled", f"{name} was not compiled: {first}")
    return directory
