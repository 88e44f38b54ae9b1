"""The jobs on other releases of Spark: ``python -m tests.integration.history.spark_releases``.

For each release: the tests of the jobs (not with ``--no-tests``), kills of the history on files and
on S3, and its rate beside Spark's own read. A release other than the one that is installed here is
installed into the cache, in front of it.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import msgspec

from caughtup.pipelines.java.jars import cache_directory

ROOT = Path(__file__).parents[3]
RELEASES = ("3.5.7", "4.0.0", "4.1.1", "4.2.0")
TESTS = (
    "tests/pipelines",
    "tests/integration/history",
    "tests/agents/cli/replay",
    "tests/bench/replay",
)
KILLS = "tests/integration/history/test_killed.py"
_COUNTS = re.compile(r"(\d+ (?:passed|failed|error)\w*)")


def installed(release: str) -> Path:
    """Return the directory with a release of PySpark, which is installed if need be."""
    directory = cache_directory() / f"pyspark-{release}"
    if not (directory / "pyspark" / "version.py").exists():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", directory]
        subprocess.run([*command, f"pyspark=={release}"], check=True)
    return directory


def environment(release: str) -> dict[str, str]:
    """Return the variables with which Python finds this release first."""
    ours = () if release == version("pyspark") else (str(installed(release)),)
    path = os.pathsep.join((*ours, str(ROOT)))
    return {name: value for name, value in os.environ.items() if name != "SPARK_HOME"} | {
        "PYTHONPATH": path
    }


def tested(release: str, tests: tuple[str, ...], *options: str, **more: str) -> str:
    """Run tests on a release; return how many passed and failed, as pytest says it.

    What pytest printed goes to standard error if one failed.
    """
    command = [sys.executable, "-m", "pytest", "-q", "-n1", "-p", "no:cacheprovider", *options]
    ran = subprocess.run(
        [*command, *tests],
        cwd=ROOT,
        env=environment(release) | more,
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        # The seed of the kills, and what failed.
        print(f"{release}:\n{ran.stdout}{ran.stderr}", file=sys.stderr, flush=True)
    said = _COUNTS.findall(ran.stdout.strip().splitlines()[-1])
    return ", ".join(said) or f"exit status {ran.returncode}"


def rates(release: str, records: int) -> str:
    """Return the commits a second on one thread: the history's, and of Spark's own read."""
    command = [sys.executable, "-m", "caughtup.agents", "bench", "history", "--format", "json"]
    ran = subprocess.run(
        [*command, "--records", str(records), "--threads", "1", "--log", "interleaved"],
        cwd=ROOT,
        env=environment(release),
        stdout=subprocess.PIPE,
        check=True,
    )
    found = msgspec.json.decode(ran.stdout.splitlines()[-1])
    return f"{found['records_per_second']:,.0f} / {found['raw_records_per_second']:,.0f}"


def main() -> int:
    """Print a row of the table of docs/measured.md for each release; exit with 1 if a test failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", nargs="*", default=RELEASES)
    parser.add_argument("--no-tests", action="store_true", help="kills and rates alone")
    parser.add_argument(
        "--kills", type=int, default=0, help="of the history, on each release, on files and on S3"
    )
    parser.add_argument("--records", type=int, default=0, help="for the rates; 0: none")
    given = parser.parse_args()
    print("| Spark | tests | kills | history / Spark's own read, commits/s |\n|---|---|---|---|")
    failed = False
    for release in given.releases:
        row = [release, "-" if given.no_tests else tested(release, TESTS)]
        kills = {"HISTORY_KILLS": str(given.kills)}
        row.append(tested(release, (KILLS,), "-m", "thorough", **kills) if given.kills else "-")
        row.append(rates(release, given.records) if given.records else "-")
        failed |= any("failed" in cell or "error" in cell for cell in row)
        print(f"| {' | '.join(row)} |", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
