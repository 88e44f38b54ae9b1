"""The program for spark-submit: runs ``caughtup`` from the wheel that is submitted with it.

``spark-submit … --py-files caughtup-….whl submit.py pipeline history …``. Python can import from a
wheel, so the cluster's machines need caughtup's dependencies, but not caughtup. Imports of caughtup
are inside the function, to report a missing wheel.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> None:
    """Run the command line, with the wheel on every executor.

    Exits with one line if Python does not find caughtup or one of its dependencies.
    """
    _leave_own_directory()
    try:
        from pyspark import SparkContext

        from caughtup.agents.main import main as command
    except ModuleNotFoundError as error:
        name = (error.name or "").partition(".")[0]
        sys.exit(
            "caughtup: Python does not find caughtup: give spark-submit --py-files caughtup-….whl"
            if name == "caughtup"
            else f"caughtup: the driver's Python has no {name}; type: pip install 'caughtup[spark]'"
        )
    # Spark copies wheels to its workers, but adds only files with these extensions to their path.
    SparkContext.PACKAGE_EXTENSIONS = (*SparkContext.PACKAGE_EXTENSIONS, ".whl")
    command(prog_name="caughtup")


def _leave_own_directory() -> None:
    """Remove this file's directory from the path: its modules are no top-level modules."""
    own = Path(__file__).resolve().parent
    sys.path[:] = [path for path in sys.path if Path(path).resolve() != own]


if __name__ == "__main__":
    main()
