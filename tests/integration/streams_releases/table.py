"""The table of docs/measured.md: ``python -m tests.integration.streams_releases.table``."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from caughtup.demo.cluster.cluster import EmbeddedCluster
from tests.integration.streams_releases.applications import (
    RACKED_BROKERS,
    RELEASES,
    VARIATIONS,
    Outcome,
    play,
    rows,
)
from tests.support.service import Service


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", nargs="*", default=[*RELEASES])
    parser.add_argument("--variations", nargs="*", type=int, help="by their numbers, from 0")
    parser.add_argument("--seconds", type=float, default=75, help="after each change")
    given = parser.parse_args()
    outcomes: list[Outcome] = []
    with (
        tempfile.TemporaryDirectory() as scratch,
        EmbeddedCluster(nodes=2, broker_properties=RACKED_BROKERS) as cluster,
        Service(cluster) as service,
    ):
        for version in given.releases:
            fit = [
                one
                for number, one in enumerate(VARIATIONS)
                if one.since <= RELEASES[version]
                and (given.variations is None or number in given.variations)
            ]
            outcomes += play(
                cluster, service, version, fit, seconds=given.seconds, directory=Path(scratch)
            )
            print("\n".join(rows(outcomes)), flush=True)


if __name__ == "__main__":
    main()
