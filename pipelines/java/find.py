"""Find a Java that can run Kafka; the error says how to install one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from caughtup.models.errors import CaughtupError

OLDEST = 17
"""Kafka 4's brokers need this feature release of Java."""

INSTALLED_JVMS = Path("/usr/lib/jvm")
_RELEASE = re.compile(r'^JAVA_VERSION="(?:1\.)?(\d+)', re.MULTILINE)
_PRINTED = re.compile(r'version "(?:1\.)?(\d+)')

#: For short-lived JVMs on few cores: they start in half the CPU time.
QUICK_START = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Xshare:auto",
    "-XX:-UsePerfData",
    "-Djava.awt.headless=true",
)


class JavaMissing(CaughtupError):  # noqa: N818
    """No Java of a usable version is installed."""


class Java(NamedTuple):
    """A Java runtime: its ``java`` program, its home directory and its feature release (17)."""

    program: Path
    home: Path
    version: int


def find_java(
    newest: int | None = None,
    environment: Mapping[str, str] | None = None,
    installed: Path = INSTALLED_JVMS,
) -> Java:
    """Find a Java from 17 to ``newest``: JAVA_HOME's, then the PATH's, then installed ones.

    ``newest``: the newest release that a program supports (Spark 4.0 runs on 17 and 21, not on 25).
    Of several installed ones the oldest that is new enough is taken. Raises JavaMissing.
    """
    environment = os.environ if environment is None else environment
    seen: list[Java] = []
    for program in _programs(environment, installed):
        java = _look_at(program)
        if java is None:
            continue
        if java.version >= OLDEST and (newest is None or java.version <= newest):
            return java
        seen.append(java)
    wanted = f"Java {OLDEST} or newer" if newest is None else f"Java {OLDEST} to {newest}"
    found = ", ".join(f"{java.version} in {java.home}" for java in dict.fromkeys(seen)) or "none"
    raise JavaMissing(
        "java_missing",
        f"{wanted} is needed (found: {found}); type: "
        f"sudo apt-get install -y --no-install-recommends openjdk-{OLDEST}-jre-headless",
    )


def _programs(environment: Mapping[str, str], installed: Path) -> Iterator[Path]:
    if environment.get("JAVA_HOME"):
        yield Path(environment["JAVA_HOME"], "bin", "java")
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path is not None:
        yield Path(on_path)
    by_version = sorted(
        (java for home in _directories(installed) if (java := _look_at(home / "bin" / "java"))),
        key=lambda java: (java.version, java.home),
    )
    yield from (java.program for java in by_version)


def _directories(parent: Path) -> list[Path]:
    try:
        return sorted(path for path in parent.iterdir() if path.is_dir())
    except OSError:
        return []


def _look_at(program: Path) -> Java | None:
    if not os.access(program, os.X_OK) or program.is_dir():
        return None
    # Resolved, since /usr/bin/java is a chain of links into the home directory.
    program = program.resolve()
    version = _version_in_release_file(program.parent.parent) or _version_printed(program)
    return None if version is None else Java(program, program.parent.parent, version)


def _version_in_release_file(home: Path) -> int | None:
    try:
        match = _RELEASE.search((home / "release").read_text(errors="replace"))
    except OSError:
        return None
    return None if match is None else int(match[1])


def _version_printed(program: Path) -> int | None:
    # Some distributions leave the release file out; asking Java itself costs 0.1 s.
    try:
        ran = subprocess.run(
            [program, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _PRINTED.search(ran.stderr + ran.stdout)
    return None if match is None else int(match[1])
