"""Real applications of published releases, without settings: the service decides as they did."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

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
from tests.support.service import Service

ONE_STANDBY = VARIATIONS[1]
LOADED_RELEASES = ("2.8.2", "3.6.2", "4.1.1", "4.3.1")


def check(outcomes: list[Outcome]) -> None:
    """Nothing is a mismatch, something was decided, and no wrong value is known."""
    print("\n".join(rows(outcomes)))
    for one in outcomes:
        assert one.found, one
        assert not one.results()["mismatch"], one
        assert not one.wrong(), one


@pytest.mark.thorough  # its decisions are held to the release's jar in tests/oracle/releases
def test_an_application_of_an_old_release_is_understood_without_settings(
    cluster: EmbeddedCluster, service: Service, tmp_path: Path
) -> None:
    outcomes = play(cluster, service, "3.3.2", [ONE_STANDBY], seconds=12, directory=tmp_path)
    check(outcomes)
    assert outcomes[0].results()["match"]


@pytest.mark.thorough
@pytest.mark.parametrize("version", RELEASES)
def test_applications_of_a_release_are_understood_without_settings(
    tmp_path: Path, version: str
) -> None:
    fit = [one for one in VARIATIONS if one.since <= RELEASES[version]]
    with (
        EmbeddedCluster(nodes=2, broker_properties=RACKED_BROKERS) as cluster,
        Service(cluster) as service,
    ):
        outcomes = play(cluster, service, version, fit, seconds=75, directory=tmp_path)
    check(outcomes)
    late = sum((one.results(after=5) for one in outcomes), start=outcomes[0].results(after=10**6))
    assert late["match"] >= 0.95 * late.total(), late


@pytest.mark.thorough
@pytest.mark.parametrize("records", [100, 1_000, 5_000])
@pytest.mark.parametrize("version", LOADED_RELEASES)
def test_applications_under_load_are_understood_without_settings(
    tmp_path: Path, version: str, records: int
) -> None:
    """Records flow through every rebalance, keys in turn."""
    with EmbeddedCluster(nodes=2) as cluster, Service(cluster) as service:
        outcomes = play(
            cluster,
            service,
            version,
            LOADED,
            seconds=25,
            directory=tmp_path,
            records_per_second=records,
            changes=8,
        )
    check(outcomes)
    late = sum((one.results(after=5) for one in outcomes), start=Counter())
    assert late["match"] + late["consistent"] >= 0.95 * late.total(), late
    by_default = outcomes[-1].results(after=5)
    assert by_default["match"] >= 0.85 * by_default.total(), by_default
