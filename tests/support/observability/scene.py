"""A cluster on which everything happens at once that operators look at, beside the real service."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from caughtup.agents.kafka.protocol.client import reassigner
from caughtup.demo.apps.streams import StreamsApplication
from caughtup.demo.cluster.load import produce
from caughtup.demo.cluster.throttle import clear_throttle, set_throttle
from caughtup.demo.cluster.topics import create_topics
from caughtup.demo.fleet.offset_commits import offsets_partition
from caughtup.demo.processes.children import ClosedOnExit
from caughtup.demo.story.stage import APPLICATION, PARTITIONS, DemoStage
from caughtup.models.copies.catch_up_rates import WINDOWS_SECONDS, RateWindow, WindowRate
from caughtup.models.ids import TopicPartition
from caughtup.models.records.keys import encode_group
from caughtup.models.records.topics import CATCH_UP_RATES, PIPELINE_PROGRESS, with_prefix
from caughtup.models.wire.consumer_offsets import OffsetKey
from caughtup.pipelines.progress import encode_progress
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
#: A partition whose movement is over.
LETTERS = TopicPartition("letters", 0)
PAYMENTS = "payments"
#: A group that reads and never commits, while a transaction is open on what it reads.
AUDIT = "payments-audit"
#: Groups on one topic: one reads more slowly than is written, one went back.
LEDGER, SLOW, REPLAY = "ledger", "ledger-slow", "ledger-replay"
#: A query of Spark that isn't one of the data pipeline's.
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
    """Warm-ups, a throttled reassignment, an outage that is over, a record nobody can read.

    Also an open transaction and a group without a commit. ``began`` and ``set_at`` (seconds): all
    of it happened in between, and was scraped twice. ``warm_ups`` of the third instance are left
    then: one, or two. A context manager; ``set`` begins it.
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
        """Make everything happen, and wait until the service and Prometheus have seen it."""
        self.began = time.time()
        stage = self.stage
        stage.start_cluster()
        stage.start_service()
        self._prometheus = Prometheus(
            stage.processes, f"127.0.0.1:{stage.web_port}", self.directory
        )
        self._prometheus.wait_ready()
        self._outage()
        self._two_instances()
        self._group_without_commit()
        self._groups_that_do_not_keep_up()
        self._queries_of_spark()
        self._unreadable_record()
        self._catch_up_rate()
        self._stream()
        self._reassignments()
        self._third_instance()
        while not self._stands_still():
            self._wait("the rebalances to be over", self._is_warming)
        self.warm_ups = len(self._copies("warmup"))
        self.set_at = time.time()

    def _stands_still(self) -> bool:
        """Await two scrapes; tell whether they saw the same generation at rest.

        On a machine that is too busy an instance may lose its membership and join once more.
        """
        before = self._view().get("generation")
        for _ in range(2):
            self._wait_scraped()
        return self._is_warming() and self._view()["generation"] == before

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
            time.sleep(0.5)  # the group's rhythm, in which it is to be seen
        series = f'caughtup_group_catchup_eta_seconds{{[^}}]*group="{SLOW}"[^}}]*}} [+]Inf'
        self._wait("a group that never catches up", lambda: re.search(series, self.stage.metrics()))

    def _queries_of_spark(self) -> None:
        """Lay out the checkpoint of a query with a batch in flight, and one that can't be read."""
        at_ms = round(time.time() * 1000)
        query = Checkpoint(self.directory / "checkpoints" / QUERY)
        for number in range(3):
            query.batch(number, at_ms - 1_000 * (3 - number), {LEDGER: {0: 798 + number}})
        query.start(3, at_ms, {LEDGER: {0: 800}})
        broken = Checkpoint(self.directory / "checkpoints" / "broken")
        (broken.folder / "metadata").write_bytes(b"")
        self._wait("the query", lambda: f"spark:{QUERY}" in self.stage.metrics())

    def _unreadable_record(self) -> None:
        """Write a commit that is cut off, where the brokers keep neither group."""
        taken = {
            offsets_partition(group, _OFFSETS_PARTITIONS)
            for group in (APPLICATION, AUDIT, SLOW, REPLAY, "caughtup")
        }
        free = min(set(range(_OFFSETS_PARTITIONS)) - taken)
        cut_off = (wire.offset_key(OffsetKey("broken", "broken", 0)), b"\0\3cut off")
        future = (wire.number("h", 99), b"of a later version")
        write_offsets(self.stage.cluster, free, cut_off, future)

    def _catch_up_rate(self) -> None:
        """Write a rate as the job on Spark does: how fast a changelog grows isn't known yet."""
        partition = TopicPartition(f"{APPLICATION}-counts-changelog", 0)
        unknown = WindowRate(None, None, 0)
        windows = tuple(RateWindow(each, unknown, unknown) for each in WINDOWS_SECONDS)
        rates = WindowRates(round(time.time() * 1000), windows)
        producer = Producer(self.stage.cluster.client_config())
        value = rates_value({"topic": partition.topic, "partition": 0}, rates, trigger_seconds=10)
        producer.produce(with_prefix(CATCH_UP_RATES), value, partition_key(partition))
        assert producer.flush(30) == 0

    def _stream(self) -> None:
        """Publish a stream's progress as a job on Spark would."""
        batch = {"batch": 2, "batch_seconds": 4.5, "rows": 900, "rows_per_second": 200.0}
        known = {"offsets_behind": 70, "quarantined": 1, "state_rows": 12}
        record = encode_progress("running", {"trigger_seconds": 600.0, **batch, **known})
        producer = Producer(self.stage.cluster.client_config())
        producer.produce(with_prefix(PIPELINE_PROGRESS), record, encode_group(STREAM))
        assert producer.flush(30) == 0
        self._wait("the stream to be shown", lambda: self.stage.page()["streams"])

    def _reassignments(self) -> None:
        """Move a partition to its end, and another one so slowly that it stays on its way."""
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
        """Return what the page says of a partition that is being reassigned; empty if it isn't."""
        rows = self.stage.page()["reassignments"]
        return next((r for r in rows if (r["topic"], r["partition"]) == partition), {})

    def _third_instance(self) -> None:
        """Start a third instance: its copies are warm-ups, and a probing rebalance is due."""
        self.stage.application.start_instance("orders-c")
        self._wait("warm-ups", self._is_warming)
        # Only a task that processes again is known to have been restored.
        produce(self.stage.cluster, self.stage.application.source, MORE_ORDERS, keys=500)
        self._wait("actives at work", lambda: not self._copies("restoring"))

    def _is_warming(self) -> bool:
        """Return whether copies warm up and no active restores: the two-step rebalance is over.

        Two are begun. One may be caught up when the second step comes, and takes its task over.
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
        """Wait for a scrape of what is so now."""
        now = time.time()
        self._wait("a scrape", lambda: self._prometheus.scraped_after(now))

    def close(self) -> None:
        """End everything."""
        self._clients.clear()
        self.stage.close()
