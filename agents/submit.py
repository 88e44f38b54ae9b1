"""The program that spark-submit is given: ``caughtup``, out of the wheel that it ships as well.

A wheel is a zip file, and Python imports from it. The cluster's machines need what caughtup
depends on, and not caughtup itself: ``spark-submit … --py-files caughtup-….whl submit.py
pipeline history …``. Imports of caughtup are inside, since there may be none.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> None:
    """Run the command line, with the wheel on its way to every executor.

    Exits with one line where Python finds no caughtup, or not what it depends on.
    """
    _leave_own_directory()
    try:
        from pyspark import SparkContext

        from caughtup.agents.main import main as command
    except ModuleNotFoundError as error:
        name = (error.name or "").partition(".")[0]
        sys.exit(
            "caughtup: there is no caughtup here; give spark-submit --py-files caughtup-….whl"
            if name == "caughtup"
            else f"caughtup: the driver's Python has no {name}; type: pip install 'caughtup[spark]'"
        )
    # By their names Spark's workers import from these; wheels are copied to them, and left alone.
    SparkContext.PACKAGE_EXTENSIONS = (*SparkContext.PACKAGE_EXTENSIONS, ".whl")
    command(prog_name="caughtup")


def _leave_own_directory() -> None:
    """Python begins with this file's directory, whose neighbours aren't meant to be top-level."""
    own = Path(__file__).resolve().parent
    sys.path[:] = [path for path in sys.path if Path(path).resolve() != own]


if __name__ == "__main__":
    main()
