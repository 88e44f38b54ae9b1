"""A cluster with every condition that operators look at, beside the real service."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from caughtup.agents.kafka.protocol.client import reassigner
from caughtup.demo.apps.streams import StreamsApplication
from caughtup.demo.cluster.load import produce
from caughtup.demo.cluster.throttle import clear_throttle, set_throttle
from caughtup.demo.cluster.topics import create_topics
from caughtup.demo.processes.children import ClosedOnExit
from caughtup.demo.story.stage import APPLICATION, PARTITIONS, DemoStage
from caughtup.models.assignors.java.strings import coordinator_partition
from caughtup.models.copies.catch_up_rates import WINDOWS_SECONDS, RateWindow, WindowRate
from caughtup.models.ids import TopicPartition
from caughtup.models.records.keys import encode_group
from caughtup.models.records.pipeline_progress import FORMAT as PROGRESS
from caughtup.models.records.pipeline_progress import ProgressRecord
from caughtup.models.records.topics import CATCH_UP_RATES, PIPELINE_PROGRESS, with_prefix
from caughtup.models.wire.consumer_offsets import OffsetKey
from caughtup.pipelines.rates.slots import partition_key, rates_value
from caughtup.pipelines.rates.state import WindowRates
from tests.support import wire
from tests.support.checkpoints import Checkpoint
from tests.support.kafka.topics import write_offsets
from tests.support.observability.prometheus import Prometheus
from tests.support.service import commit

SECONDS = 120.0
ORDERS = 5_000
MORE_ORDERS = 500
PARCELS = TopicPartition("parcels", 0)
#: A partition whose reassignment has ended.
LETTERS = TopicPartition("letters", 0)
PAYMENTS = "payments"
#: A group without commits, which reads a topic with an open transaction.
AUDIT = "payments-audit"
#: Groups on one topic: one reads more slowly than is written, one was rewound.
LEDGER, SLOW, REPLAY = "ledger", "ledger-slow", "ledger-replay"
#: A Spark query that isn't one of the data pipeline's.
QUERY = "ledger-query"
#: A stream of the data pipeline.
STREAM = "history"
CONTROLLER = 1
_OFFSETS_PARTITIONS = 4
_THROTTLE_BYTES = 100_000
_PARCELS = 8_000
_PARCEL_BYTES = 4_000
_LETTERS = 1_000


class Scene(ClosedOnExit):
    """Warm-ups, a throttled reassignment, a past outage, and an unreadable record.

    Also an open transaction and a group without a commit. All of it happened between ``began`` and
    ``set_at`` (s), and was scraped twice. One or two ``warm_ups`` of the third instance remain
    then. A context manager; ``set`` begins it.
    """

    def __init__(self, directory: Path) -> None:
        checkpoints = str(directory / "checkpoints")
        self.stage = DemoStage(
            settings={"lag_objectives": [".*=60"], "spark_checkpoints": [checkpoints]}
        )
        # Kafka's own default, so that no probing rebalance changes the scene.
        properties = {"probing.rebalance.interval.ms": "600000"}
        self.stage.application = StreamsApplication(
            self.stage.cluster, APPLICATION, partitions=PARTITIONS, properties=properties
        )
        self.directory = directory
        self.began = self.set_at = 0.0
        self.warm_ups = 0
        self._clients: list[Consumer | Producer] = []

    @property
    def prometheus(self) -> Prometheus:
        return self._prometheus

    def set(self) -> None:
        """Create all conditions, and wait until the service and Prometheus have seen them."""
        self.began = time.time()
        stage = self.stage
        stage.start_cluster()
        stage.start_service()
        self._prometheus = Prometheus(
            stage.processes, f"127.0.0.1:{stage.web_port}", self.directory
        )
        self._prometheus.wait_ready()
        self._outage()
        with ThreadPoolExecutor(1) as beside:
            others = beside.submit(self._other_conditions)
            self._two_instances()
            others.result()
        self._third_instance()
        self._wait_settled()
        self.warm_ups = len(self._copies("warmup"))
        self.set_at = time.time()

    def _other_conditions(self) -> None:
        """Create what the application has no part in, while it starts."""
        self._group_without_commit()
        self._groups_that_do_not_keep_up()
        self._queries_of_spark()
        self._unreadable_record()
        self._catch_up_rate()
        self._stream()
        self._reassignments()

    def _stands_still(self) -> bool:
        """Await two scrapes; return whether both saw the same stable generation.

        On a busy machine an instance may lose its membership and join again.
        """
        before = self._view().get("generation")
        for _ in range(2):
            self._wait_scraped()
        return self._is_warming() and self._view()["generation"] == before

    def _wait_settled(self) -> None:
        while not self._stands_still():
            self._wait("the rebalances to be over", self._is_warming)

    def _outage(self) -> None:
        """Stop the controller until a probe has failed, and start it again."""
        cluster = self.stage.cluster
        cluster.stop_node(CONTROLLER)
        self._wait("a failed probe", lambda: "caughtup_probe_errors_total{" in self.stage.metrics())
        cluster.start_node(CONTROLLER)

    def _two_instances(self) -> None:
        stage, application = self.stage, self.stage.application
        application.start_instance("orders-a")
        produce(stage.cluster, application.source, ORDERS, keys=500)
        application.start_instance("orders-b")
        application.wait_caught_up()

    def _group_without_commit(self) -> None:
        client = self.stage.cluster.client_config()
        create_topics(self.stage.cluster, {PAYMENTS: 1})
        reader = Consumer({**client, "group.id": AUDIT, "enable.auto.commit": False})
        writer = Producer(
            {**client, "transactional.id": PAYMENTS, "transaction.timeout.ms": 600_000}
        )
        self._clients += [reader, writer]
        writer.init_transactions(30)
        writer.begin_transaction()
        writer.produce(PAYMENTS, b"not committed yet")
        writer.flush(30)
        reader.subscribe([PAYMENTS])
        self._wait("the group to be assigned", lambda: reader.poll(0.2) or reader.assignment())

    def _groups_that_do_not_keep_up(self) -> None:
        """Read with one group more slowly than is written, and rewind another."""
        create_topics(self.stage.cluster, {LEDGER: 1})
        produce(self.stage.cluster, LEDGER, 100)
        commit(self.stage.cluster, REPLAY, LEDGER, 90)
        commit(self.stage.cluster, REPLAY, LEDGER, 10)
        for step in range(1, 8):
            produce(self.stage.cluster, LEDGER, 100)
            commit(self.stage.cluster, SLOW, LEDGER, 5 * step)
            time.sleep(0.5)  # the group's commit interval
        series = f'caughtup_group_catchup_eta_seconds{{[^}}]*group="{SLOW}"[^}}]*}} [+]Inf'
        self._wait("a group that never catches up", lambda: re.search(series, self.stage.metrics()))

    def _queries_of_spark(self) -> None:
        """Write the checkpoint of a query with a batch in flight, and an unreadable one."""
        at_ms = round(time.time() * 1000)
        query = Checkpoint(self.directory / "checkpoints" / QUERY)
        for number in range(3):
            query.batch(number, at_ms - 1_000 * (3 - number), {LEDGER: {0: 798 + number}})
        query.start(3, at_ms, {LEDGER: {0: 800}})
        broken = Checkpoint(self.directory / "checkpoints" / "broken")
        (broken.folder / "metadata").write_bytes(b"")
        self._wait("the query", lambda: f"spark:{QUERY}" in self.stage.metrics())

    def _unreadable_record(self) -> None:
        """Write a truncated commit to a partition of the log without these groups."""
        taken = {
            coordinator_partition(group, _OFFSETS_PARTITIONS)
            for group in (APPLICATION, AUDIT, SLOW, REPLAY, "caughtup")
        }
        free = min(set(range(_OFFSETS_PARTITIONS)) - taken)
        cut_off = (wire.offset_key(OffsetKey("broken", "broken", 0)), b"\0\3cut off")
        future = (wire.number("h", 99), b"of a later version")
        write_offsets(self.stage.cluster, free, cut_off, future)

    def _catch_up_rate(self) -> None:
        """Write a rate record like the Spark job's, with an unknown growth of the changelog."""
        partition = TopicPartition(f"{APPLICATION}-counts-changelog", 0)
        unknown = WindowRate(None, None, 0)
        windows = tuple(RateWindow(each, unknown, unknown) for each in WINDOWS_SECONDS)
        rates = WindowRates(round(time.time() * 1000), windows)
        producer = Producer(self.stage.cluster.client_config())
        value = rates_value({"topic": partition.topic, "partition": 0}, rates, trigger_seconds=10)
        producer.produce(with_prefix(CATCH_UP_RATES), value, partition_key(partition))
        assert producer.flush(30) == 0

    def _stream(self) -> None:
        """Publish a stream's progress like a Spark job."""
        batch = {"batch": 2, "batch_seconds": 4.5, "rows": 900, "rows_per_second": 200.0}
        known = {"offsets_behind": 70, "quarantined": 1, "state_rows": 12}
        told = ProgressRecord(PROGRESS.schema, "running", 600.0, **batch, **known)
        record = PROGRESS.encode(told)
        producer = Producer(self.stage.cluster.client_config())
        producer.produce(with_prefix(PIPELINE_PROGRESS), record, encode_group(STREAM))
        assert producer.flush(30) == 0
        self._wait("the stream to be shown", lambda: self.stage.page()["streams"])

    def _reassignments(self) -> None:
        """Complete one reassignment, and start another that is too slow to end."""
        cluster = self.stage.cluster
        self._throttled_move(LETTERS, _LETTERS)
        self._wait("the first reassignment", lambda: self._moving(LETTERS))
        clear_throttle(cluster, LETTERS.topic)
        self._wait("its end", lambda: self.stage.page()["recent_reassignments"])
        self._throttled_move(PARCELS, _PARCELS)
        self._wait("the reassignment's pace", lambda: "eta_seconds" in self._moving(PARCELS))

    def _throttled_move(self, partition: TopicPartition, records: int) -> None:
        cluster = self.stage.cluster
        create_topics(cluster, {partition.topic: 1}, replicas=1)
        produce(cluster, partition.topic, records, value_bytes=_PARCEL_BYTES)
        set_throttle(cluster, partition.topic, _THROTTLE_BYTES)
        metadata = AdminClient(cluster.client_config()).list_topics(partition.topic)
        leader = metadata.topics[partition.topic].partitions[partition.partition].leader
        reassigner(cluster.bootstrap_servers)(partition, [3 - leader])

    def _moving(self, partition: TopicPartition) -> dict[str, Any]:
        """Return the page's view of a partition in movement; empty if it isn't."""
        rows = self.stage.page()["reassignments"]
        return next((r for r in rows if (r["topic"], r["partition"]) == partition), {})

    def _third_instance(self) -> None:
        """Start a third instance: its copies are warm-ups, and a probing rebalance is due."""
        self.stage.application.start_instance("orders-c")
        self._wait("warm-ups", self._is_warming)
        # A standby reports its lag in a rebalance: with records written before the last one, it may
        # report one from which no time until caught up follows.
        self._wait_settled()
        # Only a task that is processed again is known to be restored.
        produce(self.stage.cluster, self.stage.application.source, MORE_ORDERS, keys=500)
        self._wait("actives at work", lambda: not self._copies("restoring"))

    def _is_warming(self) -> bool:
        """Return whether copies warm up and no active restores, after the two-step rebalance.

        Two warm-ups begin. One may be caught up at the second step, and take its task over.
        """
        view = self._view()
        owned = len(self._copies("active") + self._copies("restoring"))
        return (
            len(view["clients"]) == 3
            and owned == 2 * PARTITIONS
            and len(self._copies("warmup")) > 0
            and view["probing"].get("due_ms", 0) > 1000 * time.time()
        )

    def _view(self) -> dict[str, Any]:
        return self.stage.application_view() or {"clients": [], "tasks": []}

    def _copies(self, role: str) -> list[Any]:
        copies = (copy for task in self._view()["tasks"] for copy in task["copies"])
        return [copy for copy in copies if copy["role"] == role]

    def _wait(self, what: str, ask: Callable[[], Any]) -> None:
        self.stage.wait(what, ask, SECONDS)

    def _wait_scraped(self) -> None:
        """Wait for a scrape that began after this call."""
        now = time.time()
        self._wait("a scrape", lambda: self._prometheus.scraped_after(now))

    def close(self) -> None:
        """End everything."""
        self._clients.clear()
        self.stage.close()
