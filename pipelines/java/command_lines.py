"""Java command lines: for the demo's brokers and applications, and for the Java compiler."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from caughtup.pipelines.java.find import QUICK_START, find_java
from caughtup.pipelines.java.jars import classpath, ensure_jars

_LOGGING = """\
status = error
# Kafka logs while it shuts down, which log4j's own hook would cut short.
shutdownHook = disable
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %p %m (%c{1})%n%throwable
# Every configuration in full, dozens of times.
logger.configs.name = org.apache.kafka.common.config.AbstractConfig
logger.configs.level = warn
"""
_SILENT = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off", "-Xlog:class+path=off")
_COMPILER = "org.eclipse.jdt.internal.compiler.batch.Main"


def java_command(
    directory: Path, heap_megabytes: int, extra_classpath: str = "", *, kafka: str = ""
) -> list[str]:
    """Return the command ``java`` with Kafka's class path; the caller appends a class name.

    ``kafka``: the class path of another release. Log lines go to standard output. An argument file
    and the logging configuration are written into ``directory``. Raises JavaMissing or
    JarsUnavailable.
    """
    logging = directory / "log4j2.properties"
    logging.write_text(_LOGGING)
    everything = os.pathsep.join(part for part in (kafka or classpath(), extra_classpath) if part)
    arguments = (
        *quick_start(),
        f"-Xmx{heap_megabytes}m",
        # Native libraries are unpacked there, and would stay in /tmp when the process is killed.
        f"-Djava.io.tmpdir={directory}",
        f"-Dlog4j2.configurationFile={logging}",
        "-cp",
        everything,
    )
    # An argument file keeps the process list readable.
    argument_file = directory / f"java-{heap_megabytes}m.arguments"
    argument_file.write_text("".join(f"{_argument(argument)}\n" for argument in arguments))
    return [os.fspath(find_java().program), f"@{argument_file}"]


def quick_start() -> tuple[str, ...]:
    """Return QUICK_START and, if there is one, the archive of Kafka's classes.

    The archive serves a class path that begins with Kafka's; with any other, of another Java or of
    other jars, it is silently ignored. Raises JavaMissing or JarsUnavailable.
    """
    archive = class_archive()
    taken = (f"-XX:SharedArchiveFile={archive}", *_SILENT) if archive.exists() else ()
    return (*QUICK_START, *taken)


def class_archive() -> Path:
    """Return the path of the class-data-sharing archive of Kafka's classes, which need not exist.

    It is beside the jars, by the release of Java. Raises JavaMissing or JarsUnavailable.
    """
    release = (find_java().home / "release").read_bytes()
    return ensure_jars() / f"classes-{hashlib.sha256(release).hexdigest()[:12]}.jsa"


def _argument(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def compiler_command(
    sources: Iterable[Path], directory: Path, *, release: int = 17, against: str | None = None
) -> list[str]:
    """Return the command that compiles sources for a Java release into a directory.

    It runs Eclipse's compiler, since a Java runtime has none. ``against``: the class path, by
    default Kafka's published jars. Raises JavaMissing or JarsUnavailable.
    """
    jars = classpath()
    return [
        *(os.fspath(find_java().program), *QUICK_START, "-cp", jars, _COMPILER),
        *(f"-{release}", "-nowarn", "-encoding", "UTF-8"),
        *("-cp", jars if against is None else against, "-d", os.fspath(directory)),
        *map(os.fspath, sources),
    ]
