"""Others' dashboards on caughtup alone: each expression returns data, or it is said why it can't."""

from __future__ import annotations

import asyncio
import re
import time
from pathlib import Path
from typing import Any

from caughtup.agents.web.served_metrics import EXPORTERS
from caughtup.demo.processes.children import Processes
from caughtup.models.ids import TopicPartition
from tests.observability.repository import ROOT, read_yaml
from tests.support.groups.records import consumer_generation
from tests.support.observability.prometheus import Prometheus
from tests.support.observability.site import Site
from tests.support.reassignments.reassigning import cluster_observation
from tests.support.states import JUDGED_MS, KEEPING_UP, judged, read

INPUT: dict[str, Any] = read_yaml(Path(__file__).parent / "compatible.yml")
MIGRATING = ROOT / "docs" / "migrating.md"
SECONDS = 60.0


def filled(expression: str, instance: str) -> str:
    variables = {
        "instance": instance,
        "job": "caughtup",
        "topic": ".*",
        "consumergroup": ".*",
        "consumer_group": ".*",
        "one_group": KEEPING_UP,
        "namespace": "",
        "cluster_name": "production",
    }
    return re.sub(r"\$(\w+)", lambda name: variables[name[1]], expression)


async def several_scrapes(prometheus: Prometheus) -> None:
    """Wait until there are the samples that a rate takes."""
    deadline = time.monotonic() + SECONDS
    several = 'count_over_time(up{job="caughtup"}[1m]) > 3'
    while not await asyncio.to_thread(prometheus.instant, several, time.time()):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.2)


async def test_every_expression_of_others_dashboards_returns_data_or_is_listed_with_the_reason(
    tmp_path: Path,
) -> None:
    state = judged()
    state.reassignments.apply_cluster(cluster_observation(JUDGED_MS))
    read(state, consumer_generation(1, {"c": (TopicPartition("clicks", 0),)}, group=KEEPING_UP))
    answered: dict[str, bool] = {}
    with Processes() as processes:
        async with Site(state, compat_metrics=tuple(EXPORTERS)) as site:
            site.health.cluster_name = "production"
            instance = f"127.0.0.1:{site.server.port}"
            prometheus = Prometheus(processes, instance, tmp_path)
            await asyncio.to_thread(prometheus.wait_ready)
            await several_scrapes(prometheus)
            for of in INPUT.values():
                for expression in (*of["expressions"], *of["without"]):
                    asked = filled(expression, instance)
                    found = await asyncio.to_thread(prometheus.instant, asked, time.time())
                    answered[expression] = bool(found)
    empty = {expression for expression, is_there in answered.items() if not is_there}
    assert empty == {expression for of in INPUT.values() for expression in of["without"]}


def test_every_name_is_asked_for_and_in_the_table_of_the_page() -> None:
    rows = set(re.findall(r"^\| `(k\w+)` \|", MIGRATING.read_text(), re.MULTILINE))
    assert INPUT.keys() == EXPORTERS.keys()
    for exporter, families in EXPORTERS.items():
        asked = " ".join([*INPUT[exporter]["expressions"], *INPUT[exporter]["without"]])
        names = {family.name for family in families}
        assert names <= rows
        unasked = {name for name in names if not re.search(rf"\b{name}\b", asked)}
        # Of what its README names, and no dashboard asks for.
        assert unasked <= {
            "kafka_consumergroup_lag_sum",
            "kafka_consumergroup_current_offset_sum",
            "kafka_topic_partition_oldest_offset",
            "kafka_brokers",
        }


def test_every_expression_without_an_answer_is_on_the_page_with_its_reason() -> None:
    text = MIGRATING.read_text()
    for of in INPUT.values():
        for expression, reason in of["without"].items():
            assert reason
            for name in re.findall(r"\b(?:kminion|kafka|jvm)_\w+", expression):
                assert name in text, name
