"""From an earlier build to instances that share the groups, and back, while groups rebalance.

The earlier build is the git revision UPGRADE_FROM, by default the last one before groups were shared.
It prints for how long a scraper of all instances found nothing of a group.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import pytest

from tests.chaos.cluster import ChaosCluster
from tests.chaos.hand_over import Told
from tests.chaos.rebalancing import rebalancing_cluster
from tests.support.groups.emulated import Rebalancing, name
from tests.support.service import Service, wait_for

UPGRADE_FROM = os.environ.get("UPGRADE_FROM", "bc708e74~1")
ROOT = Path(__file__).parents[3]
SECONDS = 60.0
#: A gap that a Prometheus with the usual scrape interval of 15 s does not see.
GAP_SECONDS = 15.0

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]


class Scraper:
    """Scrapes all instances every half second, and notes when each group was last on any."""

    def __init__(self, groups: list[str]) -> None:
        self.services: list[Service] = []
        self.longest = dict.fromkeys(groups, 0.0)
        self._last: dict[str, float] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)

    def _run(self) -> None:
        while not self._stop.wait(0.5):
            for service in list(self.services):
                for group in shown(service):
                    if group in self.longest:
                        now = time.monotonic()
                        gap = now - self._last.get(group, now)
                        self.longest[group] = max(self.longest[group], gap)
                        self._last[group] = now


def shown(service: Service) -> list[str]:
    """Return the groups that an instance has on ``/metrics``; none if it does not answer."""
    try:
        samples = service.metrics()
    except OSError:
        return []
    return [
        sample.labels["group"] for sample in samples if sample.name == "caughtup_group_generation"
    ]


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Check out the earlier build, and return its command."""
    directory = tmp_path_factory.mktemp("earlier")
    archive = subprocess.run(
        ["git", "archive", UPGRADE_FROM], cwd=ROOT, capture_output=True, check=True
    )
    subprocess.run(["tar", "-x", "-C", str(directory)], input=archive.stdout, check=True)
    return ["env", f"PYTHONPATH={directory}", sys.executable, "-m", "caughtup.agents"]


@pytest.fixture
def scene() -> Iterator[tuple[ChaosCluster, Rebalancing]]:
    with rebalancing_cluster() as (cluster, rebalancing):
        yield cluster, rebalancing


def test_an_earlier_build_is_replaced_one_by_one_and_put_back(
    scene: tuple[ChaosCluster, Rebalancing], earlier: list[str]
) -> None:
    cluster, rebalancing = scene
    own, groups = name("caughtup"), sorted(rebalancing.groups)

    def instance(*, new: bool) -> Service:
        if new:
            return Service(cluster, application_id=own, workers="shared")
        return Service(cluster, application_id=own, command=earlier)

    def wait_shown(*services: Service) -> None:
        """Wait until each group is with one of these instances."""
        wait_for(
            "each group is with one",
            lambda: sorted(g for s in services for g in shown(s) if g in groups) == groups,
            SECONDS,
        )

    with Scraper(groups) as scraper, ExitStack() as stack:

        def begin(service: Service, *, ready: bool = True) -> Service:
            stack.callback(lambda: service.process.terminate(10))
            service.start() if ready else service.begin()
            scraper.services.append(service)
            return service

        first = begin(instance(new=False))
        second = begin(instance(new=False), ready=False)
        wait_shown(first)
        # Replaced: the standing-by one first.
        wait_for("it stands by", lambda: "is active" in second.unready(), SECONDS)
        assert second.stop() == 0
        third = begin(instance(new=True), ready=False)
        wait_for("it stands by", lambda: "is active" in third.unready(), SECONDS)
        wait_shown(first)
        assert first.stop() == 0
        wait_shown(third)
        fourth = begin(instance(new=True))
        wait_shown(third, fourth)
        assert all(shown(one) for one in (third, fourth))
        time.sleep(5)  # for generations that are decided by both
        told = Told.of(cluster, third, rebalancing.groups)
        assert told.wrong(rebalancing.groups) == []
        gaps = sorted(scraper.longest.values())
        print(f"upgrade: no instance had a group for {gaps[-1]:.1f} s at most")
        assert gaps[-1] < GAP_SECONDS

        # An earlier build beside them is refused, and says so; the others go on.
        refused = begin(instance(new=False), ready=False)
        other = "other programs use this group"  # what it takes them for
        wait_for("it is refused", lambda: other in refused.unready(), SECONDS)
        wait_shown(third, fourth)
        refused.stop()

        # Without them it goes on, with all that they wrote.
        assert [third.stop(), fourth.stop()] == [0, 0]
        last = begin(instance(new=False))
        wait_shown(last)
        time.sleep(5)
        told = Told.of(cluster, last, rebalancing.groups)
        assert told.wrong(rebalancing.groups) == []
        assert not [one for one in last.metrics("records_refused_total") if one.value]
