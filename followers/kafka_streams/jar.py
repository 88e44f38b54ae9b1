"""Makes ``caughtup-follower.jar`` of the Java sources beside this file.

``python -m caughtup.followers.kafka_streams.jar [PATH]`` compiles with the published jars that the
demo keeps; a project may also compile the sources in its own build.
"""

from __future__ import annotations

import sys
import tempfile
import zipfile
from pathlib import Path

from caughtup.models.errors import CaughtupError
from caughtup.pipelines.java.compiling import compile_java

NAME = "caughtup-follower.jar"
SOURCES = Path(__file__).parent
#: The oldest Java that Kafka Streams 4 runs on.
RELEASE = 11
_MANIFEST = "Manifest-Version: 1.0\r\nAutomatic-Module-Name: caughtup\r\n\r\n"
#: The earliest time that zip supports: the same sources give the same bytes.
_MOMENT = (1980, 1, 1, 0, 0, 0)


def build_jar(path: Path) -> Path:
    """Write the jar and return its path. Raises CaughtupError as ``compile_java`` does."""
    with tempfile.TemporaryDirectory(prefix="caughtup-follower-") as temporary:
        classes = Path(temporary)
        sources = sorted(SOURCES.glob("*.java"))
        compile_java("the follower", sources, classes, release=RELEASE)
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
