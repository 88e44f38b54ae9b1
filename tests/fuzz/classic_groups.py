"""Groups on the classic protocol: consumers, Kafka Streams, Connect, and whatever else joins."""

from __future__ import annotations

from caughtup.models.ids import ConnectorTaskId, ProcessId, TaskId, TopicPartition
from caughtup.models.polls.batch import Record
from caughtup.models.wire.connect_protocol import ConnectorsAndTasks, WorkerAssignment, WorkerState
from caughtup.models.wire.group_metadata import (
    ConsumerAssignment,
    ConsumerSubscription,
    GroupMember,
    GroupMetadata,
)
from caughtup.models.wire.user_data import AssignmentInfo, HostInfo, SubscriptionInfo
from tests.fuzz.values import Values
from tests.models.wire.connect_encoders import worker_assignment, worker_state
from tests.models.wire.streams_encoders import assignment_info, subscription_info
from tests.support import wire
from tests.support.damage import damaged


class ClassicGroups:
    """Makes their records; ``damage`` is how often what a member says is damaged."""

    def __init__(self, values: Values, damage: float) -> None:
        self._values = values
        self._damage = damage

    def record(self) -> Record:
        values = self._values
        streams = values.chance(0.6)
        protocol_type = "consumer" if streams else values.one_of("consumer", "connect", "", "x")
        metadata = GroupMetadata(
            protocol_type=protocol_type,
            generation=values.epoch(),
            protocol="stream" if streams else values.one_of("range", "caughtup", "sessioned", None),
            leader=values.one_of("m0", "m1", None),
            state_timestamp_ms=values.time_ms(),
            members=tuple(
                self._member(number, streams, protocol_type == "connect")
                for number in values.several(4)
            ),
        )
        version = values.random.randint(0, 4)
        return wire.group_key(values.group()), wire.group_metadata(metadata, version)

    def _member(self, number: int, streams: bool, connect: bool) -> GroupMember:
        values = self._values
        subscription, assignment = self.subscription(streams), self._assignment(streams)
        if connect:
            subscription, assignment = self._joined(), worker_assignment(self._told_worker())
        if values.chance(self._damage):
            subscription = damaged(values.random, subscription)
        if values.chance(self._damage):
            assignment = damaged(values.random, assignment)
        return GroupMember(
            member_id=f"m{number}" if values.chance(0.9) else values.text(),
            group_instance_id=values.maybe_text(),
            client_id=f"app-{number}-StreamThread-1" if values.chance(0.8) else values.text(),
            client_host=values.text(),
            rebalance_timeout_ms=values.int32(),
            session_timeout_ms=values.int32(),
            subscription=subscription,
            assignment=assignment if values.chance(0.9) else b"",
        )

    def _joined(self) -> bytes:
        """What a Connect worker says when it joins."""
        values = self._values
        state = WorkerState(
            version=values.one_of(0, 1, 2, -1, 32_767),
            url="http://connect:8083/",
            config_offset=values.offset(),
            assignment=self._told_worker() if values.chance(0.7) else None,
        )
        return worker_state(state)

    def _told_worker(self) -> WorkerAssignment:
        values = self._values
        return WorkerAssignment(
            version=values.one_of(0, 1, 2, 2, 3),
            error=values.one_of(0, 0, 1, -1),
            leader=values.one_of("m0", "m1", values.text()),
            leader_url="http://connect:8083/",
            config_offset=values.offset(),
            assigned=self._work(),
            revoked=self._work(),
            delay_ms=values.one_of(0, 300_000, values.int32()),
        )

    def _work(self) -> ConnectorsAndTasks:
        values = self._values
        return ConnectorsAndTasks(
            tuple(values.text() for _ in values.several()),
            tuple(ConnectorTaskId(values.text(), values.number()) for _ in values.several()),
        )

    def _partition(self) -> TopicPartition:
        return TopicPartition(self._values.topic(), self._values.number())

    def _partitions(self) -> tuple[TopicPartition, ...]:
        return tuple(sorted({self._partition() for _ in self._values.several()}))

    def subscription(self, streams: bool) -> bytes:
        values = self._values
        version = values.random.randint(0, 3)
        data = self._told() if streams or values.chance(0.1) else None
        return wire.subscription(
            ConsumerSubscription(
                version=version,
                topics=tuple(values.topic() for _ in values.several()),
                user_data=data,
                owned=self._partitions() if version >= 1 else (),
                generation=values.epoch() if version >= 2 else -1,
                rack=values.maybe_text() if version >= 3 else None,
            )
        )

    def _assignment(self, streams: bool) -> bytes:
        values = self._values
        data = self._given() if streams or values.chance(0.1) else None
        partitions = self._partitions()
        return wire.assignment(ConsumerAssignment(values.random.randint(0, 3), partitions, data))

    def _task(self) -> TaskId:
        return TaskId(self._values.number(), self._values.number())

    def _told(self) -> bytes:
        values = self._values
        version = values.random.randint(1, 11)
        sums = {self._task(): values.one_of(-2, -3, values.offset()) for _ in values.several(4)}
        reported = SubscriptionInfo(
            version=version,
            latest_supported_version=values.random.randint(1, 12),
            process_id=ProcessId(values.one_of(0, 1, 2, values.int64()), 7),
            user_end_point=values.one_of("", "host:1", values.text()),
            offset_sums=sums,
            unique_field=values.random.randint(-128, 127),
            error_code=values.int32(),
            client_tags={values.text(): values.text() for _ in values.several(2)},
        )
        return self._perhaps_damaged(subscription_info(reported))

    def _given(self) -> bytes:
        values = self._values
        version = values.random.randint(1, 11)
        hosts = {
            HostInfo(values.one_of("a", "b", "字"), values.int32()): self._partitions()
            for _ in values.several(2)
        }
        given = AssignmentInfo(
            version=version,
            commonly_supported_version=values.random.randint(1, 12),
            active=tuple(self._task() for _ in values.several()),
            standby={self._task(): self._partitions() for _ in values.several()},
            active_by_host=hosts if version >= 2 else {},
            standby_by_host=hosts if version >= 6 else {},
            error_code=values.int32(),
            next_rebalance_ms=values.one_of(None, 0, values.time_ms()),
        )
        return self._perhaps_damaged(assignment_info(given))

    def _perhaps_damaged(self, raw: bytes) -> bytes:
        values = self._values
        return damaged(values.random, raw) if values.chance(self._damage) else raw
