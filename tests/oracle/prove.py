"""``make proof``: many more generated scenarios than the tests hold against the published jars."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import click

from caughtup.pipelines.java.jars import KAFKA_VERSION

ROOT = Path(__file__).parents[2]
RESULT = ROOT / "artifacts" / "differential-proof.json"
PYTEST = [sys.executable, "-m", "pytest", str(Path(__file__).parent), "-m", "family"]


@click.command()
@click.argument("in_all", metavar="SCENARIOS", type=click.IntRange(min=1))
@click.argument("first_seed", metavar="SEED", type=click.IntRange(min=0))
def main(in_all: int, first_seed: int) -> None:
    """Run SCENARIOS over all families of tests/oracle, with seeds from SEED.

    What came of it goes to artifacts/differential-proof.json. The exit status is 1 if a decision
    differs.
    """
    families = _families()
    each = -(-in_all // families)
    environment = os.environ | {
        "ORACLE_SCENARIOS": str(each),
        "ORACLE_FIRST_SEED": str(first_seed),
    }
    print(f"{families} families of {each:,} scenarios each, from seed {first_seed:,}", flush=True)
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        options = ["-q", "-n", "2", "--dist", "worksteal", "--maxfail", "5"]
        ran = subprocess.run(
            [*PYTEST, *options, f"--junit-xml={report}"], env=environment, cwd=ROOT, check=False
        )
        held = _held(report)
    result = {
        "kafka": KAFKA_VERSION,
        "commit": _commit(),
        "first_seed": first_seed,
        "scenarios_each": each,
        "families": dict(sorted(held.items())),
        "scenarios": held.total(),
        "every_decision_the_same": ran.returncode == 0 and held.total() == families * each,
        "seconds": round(time.monotonic() - start),
    }
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=2) + "\n")
    print(RESULT.read_text(), end="")
    raise SystemExit(0 if result["every_decision_the_same"] else 1)


def _families() -> int:
    """Count the families: with one scenario each, each is one test."""
    listed = subprocess.run(
        [*PYTEST, "-qq", "--collect-only"],
        env=os.environ | {"ORACLE_SCENARIOS": "1", "ORACLE_FIRST_SEED": "0"},
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return sum(int(line.rpartition(": ")[2]) for line in listed.stdout.splitlines() if line)


def _held(report: Path) -> Counter[str]:
    """Sum up by family what the tests counted."""
    held: Counter[str] = Counter()
    for test in ElementTree.parse(report).iter("testcase"):
        properties = {one.get("name"): one.get("value", "") for one in test.iter("property")}
        if family := properties.get("family"):
            held[family] += int(properties["scenarios"])
    return held


def _commit() -> str:
    """Name the commit that was checked out, with a plus sign if the code differed from it."""
    shown = subprocess.run(
        ["git", "describe", "--always", "--dirty=+", "--exclude=*"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return shown.stdout.strip()


if __name__ == "__main__":
    main()
