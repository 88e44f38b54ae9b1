"""Makes ``caughtup-follower.jar`` of the Java sources beside this file.

``python -m caughtup.followers.kafka_streams.jar [PATH]`` compiles with the published jars that the
demo keeps; a project may also compile the sources in its own build.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from caughtup.models.errors import CaughtupError
from caughtup.pipelines.java.command_lines import compiler_command

NAME = "caughtup-follower.jar"
SOURCES = Path(__file__).parent
#: The oldest Java that Kafka Streams 4 runs on.
RELEASE = 11
_MANIFEST = "Manifest-Version: 1.0\r\nAutomatic-Module-Name: caughtup\r\n\r\n"
#: The earliest time that zip supports: the same sources give the same bytes.
_MOMENT = (1980, 1, 1, 0, 0, 0)


def compile_follower(directory: Path) -> None:
    """Compile the follower's classes into a directory.

    Raises CaughtupError: JarsUnavailable, JavaMissing, or ``not_compiled`` with the first error.
    """
    command = compiler_command(sorted(SOURCES.glob("*.java")), directory, release=RELEASE)
    ran = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if ran.returncode:
        lines = [line.strip() for line in (ran.stdout + ran.stderr).splitlines() if line.strip()]
        first = next((line for line in lines if "ERROR in" in line), "") or lines[0]
        raise CaughtupError("not_compiled", f"the follower was not compiled: {first}")


def build_jar(path: Path) -> Path:
    """Write the jar and return its path. Raises CaughtupError as compile_follower does."""
    with tempfile.TemporaryDirectory(prefix="caughtup-follower-") as temporary:
        classes = Path(temporary)
        compile_follower(classes)
        files = {"META-INF/MANIFEST.MF": _MANIFEST.encode()}
        files |= {
            file.relative_to(classes).as_posix(): file.read_bytes()
            for file in sorted(classes.rglob("*.class"))
        }
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as jar:
                for name, content in files.items():
                    jar.writestr(zipfile.ZipInfo(name, _MOMENT), content, zipfile.ZIP_DEFLATED)
        except OSError as problem:
            raise CaughtupError(
                "not_written", f"cannot write {path}: {problem.strerror}"
            ) from problem
    return path


def main() -> None:
    """Write the jar to the path in the first argument, by default into the current directory."""
    try:
        print(build_jar(Path(*sys.argv[1:2] or [NAME]).absolute()))
    except CaughtupError as problem:
        raise SystemExit(f"caughtup: {problem.message}") from None


if __name__ == "__main__":
    main()
