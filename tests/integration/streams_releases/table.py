"""The table of docs/measured.md: ``python -m tests.integration.streams_releases.table``."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from caughtup.demo.cluster.cluster import EmbeddedCluster
from tests.integration.streams_releases.applications import (
    LOADED,
    RACKED_BROKERS,
    RELEASES,
    VARIATIONS,
    Outcome,
    play,
    rows,
)
from tests.integration.streams_releases.recorded import command, judged_changes, read
from tests.support.service import Service

_DECIDED = "decided"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", nargs="*", default=[*RELEASES])
    parser.add_argument("--variations", nargs="*", type=int, help="by their numbers, from 0")
    parser.add_argument("--seconds", type=float, default=75, help="after each change")
    parser.add_argument(
        "--records",
        type=float,
        help="records/s into each application: those of LOADED, all the time",
    )
    parser.add_argument("--changes", type=int, default=3, help="instances that come or leave")
    parser.add_argument(
        "--changed",
        type=int,
        default=0,
        help="of each kind: changed decisions of each generation after the fifth, judged too",
    )
    parser.add_argument("--seed", type=int, default=0, help="of these changes")
    given = parser.parse_args()
    outcomes: list[Outcome] = []
    with (
        tempfile.TemporaryDirectory() as scratch,
        EmbeddedCluster(nodes=2, broker_properties=RACKED_BROKERS) as cluster,
        Service(
            cluster, command=command(Path(scratch, _DECIDED)) if given.changed else None
        ) as service,
    ):
        for version in given.releases:
            fit = [
                one
                for number, one in enumerate(LOADED if given.records else VARIATIONS)
                if one.since <= RELEASES[version]
                and (given.variations is None or number in given.variations)
            ]
            outcomes += play(
                cluster,
                service,
                version,
                fit,
                seconds=given.seconds,
                directory=Path(scratch),
                records_per_second=given.records or 0,
                changes=given.changes,
            )
            print("\n".join(rows(outcomes)), flush=True)
        if given.changed:
            decided = read(Path(scratch, _DECIDED))
            for of, results in judged_changes(decided, given.changed, given.seed).items():
                print(f"changed: {of}: {dict(results)}")


if __name__ == "__main__":
    main()
