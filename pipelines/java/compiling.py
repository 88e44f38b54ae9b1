"""Compiles Java sources; keeps what is costly to make beside Kafka's jars."""

from __future__ import annotations

import fcntl
import hashlib
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from caughtup.models.errors import CaughtupError
from caughtup.pipelines.java.command_lines import compiler_command
from caughtup.pipelines.java.jars import cache_directory, classpath


def compile_java(
    name: str,
    sources: Iterable[Path],
    directory: Path,
    *,
    release: int = 17,
    against: str | None = None,
) -> None:
    """Compile sources into a directory as ``compiler_command`` does; ``name`` is for the error.

    Raises CaughtupError: JarsUnavailable, JavaMissing, or ``not_compiled`` with the first error.
    """
    command = compiler_command(sources, directory, release=release, against=against)
    ran = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if ran.returncode:
        lines = [line.strip() for line in (ran.stdout + ran.stderr).splitlines() if line.strip()]
        first = next((line for line in lines if "ERROR in" in line), "") or " ".join(lines[:1])
        raise CaughtupError("not_compiled", f"{name} was not compiled: {first}")


def compiled_java(name: str, sources: Sequence[Path], against: str | None = None) -> Path:
    """Return the directory of the sources' classes, which the first process that asks compiles.

    ``against``: the class path, by default Kafka's published jars; the directory is kept for these
    sources and this class path. Raises CaughtupError as ``compile_java`` does.
    """
    path = classpath() if against is None else against
    made_of = [path.encode(), *(one.read_bytes() for one in sources)]
    return kept(
        f"{name}-classes", made_of, lambda into: compile_java(name, sources, into, against=path)
    )


def kept(name: str, made_of: Iterable[bytes], make: Callable[[Path], object]) -> Path:
    """Return a directory that ``make`` fills once for this content, whichever process asks first.

    It is in ``cache_directory()``, named after ``name`` and a digest of ``made_of``.
    """
    digest = hashlib.sha256()
    for part in made_of:
        digest.update(hashlib.sha256(part).digest())
    directory = cache_directory() / f"{name}-{digest.hexdigest()[:16]}"
    if directory.exists():
        return directory
    with directory.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not directory.exists():
            with tempfile.TemporaryDirectory(prefix=f"{name}-", dir=directory.parent) as making:
                make(coming := Path(making, "whole"))
                coming.rename(directory)
    return directory
