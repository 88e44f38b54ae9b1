"""Java command lines for the embedded cluster's and the applications' processes."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from caughtup.pipelines.java.find import find_java
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
#: For a JVM that is to be up soon on few cores, and isn't there for long: half the CPU time.
QUICK_START = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Xshare:auto",
    "-XX:-UsePerfData",
    "-Djava.awt.headless=true",
)
_SILENT = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off", "-Xlog:class+path=off")


def java_command(
    directory: Path, heap_megabytes: int, extra_classpath: str = "", *, kafka: str = ""
) -> list[str]:
    """Return ``java`` with Kafka's class path and logging to standard output, for a class name.

    ``kafka`` is the class path of another release. The argument file and the logging configuration
    are written into ``directory``. Raises JavaMissing or JarsUnavailable.
    """
    logging = directory / "log4j2.properties"
    logging.write_text(_LOGGING)
    everything = os.pathsep.join(part for part in (kafka or classpath(), extra_classpath) if part)
    archive = class_archive()
    arguments = (
        *QUICK_START,
        # One of another Java or of other jars is passed over, and nothing said about it.
        *((f"-XX:SharedArchiveFile={archive}", *_SILENT) if archive.exists() else ()),
        f"-Xmx{heap_megabytes}m",
        # Native libraries are unpacked there, and stay when the process is killed.
        f"-Djava.io.tmpdir={directory}",
        f"-Dlog4j2.configurationFile={logging}",
        "-cp",
        everything,
    )
    # An argument file keeps the process list readable.
    argument_file = directory / f"java-{heap_megabytes}m.arguments"
    argument_file.write_text("".join(f"{_argument(argument)}\n" for argument in arguments))
    return [os.fspath(find_java().program), f"@{argument_file}"]


def class_archive() -> Path:
    """Return where Java keeps the classes of Kafka that it has read before, dumped or not.

    Beside the jars that they are of, by the release of Java. Raises JavaMissing or JarsUnavailable.
    """
    release = (find_java().home / "release").read_bytes()
    return ensure_jars() / f"classes-{hashlib.sha256(release).hexdigest()[:12]}.jsa"


def _argument(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
