"""Whatever anybody writes to the service's own topics: refused, counted, and nothing else suffers."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce
from caughtup.models.records.keys import encode_copy
from tests.integration.conftest import MakeTopic
from tests.support.own_topics.records import SERVICE_RECORDS, ServiceRecord
from tests.support.service import Service, commit, wait_for

YEAR_2100_MS = 4_102_444_800_000
#: A log that says each refusal is megabytes long.
MOST_LOG = 100_000


@pytest.fixture
def service(cluster: EmbeddedCluster) -> Iterator[Service]:
    with Service(cluster, reassignments_interval=0.2) as service:
        yield service


def write(
    cluster: EmbeddedCluster,
    service: Service,
    records: list[tuple[str, bytes, bytes | None]],
    codec: str = "none",
) -> None:
    """Write records to own topics."""
    producer = Producer({**cluster.client_config(), "compression.type": codec, "linger.ms": 5})
    failed: list[KafkaError] = []
    for topic, key, value in records:
        producer.produce(
            service.topic(topic),
            value,
            key,
            on_delivery=lambda error, _: error and failed.append(error),
        )
    assert producer.flush(30) == 0
    assert failed == []


def poison(own: ServiceRecord) -> list[tuple[str, bytes, bytes | None]]:
    """Return records of one form that nobody can take, nor should."""
    beyond = {name: 2**63 for name, of in own.value.items() if type(of) is int and name != "schema"}
    values = (
        b"\x00\xff",
        b"[" * 50_000,
        b'{"schema":1,"later":' + b"[" * 10_000,
        own.encoded[:-1],
        own.changed(**beyond) if beyond else b"{}",
        own.changed(schema=99),
    )
    keys = (own.key, b"\xff", b"[" * 5_000)
    return [
        *((own.topic, own.key, value) for value in values),
        *((own.topic, key, own.changed(schema=99)) for key in keys),
        *((own.topic, key, None) for key in keys[1:]),
    ]


def refused(service: Service) -> dict[tuple[str, str], float]:
    return {
        (sample.labels["topic"], sample.labels["reason"]): sample.value
        for sample in service.metrics()
        if sample.name == "caughtup_records_refused_total"
    }


def test_poison_on_every_own_topic_stops_nothing_and_no_later_start(
    cluster: EmbeddedCluster, make_topic: MakeTopic, service: Service
) -> None:
    words = make_topic("words")
    produce(cluster, words, 1_000)
    group = f"readers-{words}"
    commit(cluster, group, words, 400)
    service.wait_value(600, "group_lag_records", group=group)

    poisoned = [one for own in SERVICE_RECORDS for one in poison(own)]
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        write(cluster, service, poisoned, codec)
    ends = {
        "schema": 1,
        "topic": words,
        "partition": 0,
        "start_offset": 0,
        "last_stable_offset": 1_000,
        "end_offset": 1_000,
    }
    look: dict[str, Any] = {"schema": 2, "topic": "nowhere", "partition": 0}
    look |= {"as_of_ms": time.time_ns() // 1_000_000, "replicas": [1, 2], "adding": [2]}
    write(
        cluster,
        service,
        [
            (
                "end-offsets",
                f"{words}-0".encode(),
                json.dumps(ends | {"as_of_ms": YEAR_2100_MS}).encode(),
            ),
            # Well-formed, and of a partition that there isn't.
            ("reassignments", b"nowhere-0", json.dumps(look).encode()),
            *(
                ("task-positions", encode_copy(f"g{number}", "p", "0_0"), b'{"schema":1,"lag":1}')
                for number in range(1_000)
            ),
        ],
    )

    produce(cluster, words, 500)
    service.wait_value(1_100, "group_lag_records", group=group)
    wait_for(
        "every topic that is followed has refused some",
        lambda: (
            {topic for topic, _ in refused(service)}
            >= {"end-offsets", "reassignments", "task-positions", "application-states"}
            and ("end-offsets", "from_the_future") in refused(service)
        ),
    )
    wait_for("the movement is over", lambda: not service.page()["reassignments"])
    assert len(service.log) < MOST_LOG, service.log[-2_000:]
    assert "Traceback" not in service.log

    service.kill()
    service.start()
    service.wait_value(1_100, "group_lag_records", group=group)
    known = refused(service)
    assert {topic for topic, _ in known} >= {"end-offsets", "recommended-assignments", "movements"}
    assert {reason for _, reason in known} >= {"bad_json", "bad_type", "other_schema", "too_deep"}
    assert len(service.log) < MOST_LOG
    assert "Traceback" not in service.log
    assert service.ready()
