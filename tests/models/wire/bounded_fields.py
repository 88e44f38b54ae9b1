"""Fields of the wire that hold a number: what reads and writes each, and its bounds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from caughtup.models.ids import NUMBER_MAX, ConnectorTaskId, ProcessId, TaskId, TopicPartition
from caughtup.models.offsets import LONG_MAX
from caughtup.models.wire.bounds import LATEST_MS
from caughtup.models.wire.connect_protocol import (
    NOTHING,
    ConnectorsAndTasks,
    WorkerAssignment,
    WorkerState,
    decode_worker_assignment,
    decode_worker_state,
)
from caughtup.models.wire.consumer_offsets import (
    OffsetCommit,
    OffsetKey,
    decode_key,
    decode_offset_commit,
)
from caughtup.models.wire.group_metadata import (
    ConsumerAssignment,
    ConsumerSubscription,
    GroupMetadata,
    decode_assignment,
    decode_group_metadata,
    decode_subscription,
)
from caughtup.models.wire.user_data import (
    AssignmentInfo,
    HostInfo,
    SubscriptionInfo,
    decode_assignment_info,
    decode_subscription_info,
)
from tests.models.wire.connect_encoders import worker_assignment, worker_state
from tests.models.wire.new_group_fields import (
    FROM_MINUS_ONE,
    KNOWN_TIMES,
    LONG_MIN,
    NUMBERS,
    OFFSETS,
    SUMS,
    TIMES,
    Field,
    new_groups,
)
from tests.models.wire.streams_encoders import assignment_info, subscription_info
from tests.support import wire

COMMIT = OffsetCommit(7, 1, "said", 1_732_000_000_000, -1, None)
METADATA = GroupMetadata("consumer", 3, "range", "c1", 1_732_000_000_000, ())
SUBSCRIPTION = ConsumerSubscription(3, ("orders",), None, (), 3, None)
INFO = SubscriptionInfo(11, 11, ProcessId(1, 2), "", {}, 0, 0, {})
TOLD = WorkerAssignment(1, 0, "", "", 0, NOTHING, NOTHING, 0)
#: A config topic that nothing was read from is at -1.
FROM_MINUS_ONE_LONG = [-1, 0, LONG_MAX], [-2, LONG_MIN]
GIVEN = AssignmentInfo(11, 11, (), {}, {}, {}, 0, None)


def commits(version: int) -> dict[str, Field]:
    def of(**changes: int) -> bytes:
        return wire.offset_commit(COMMIT._replace(**changes), version)

    fields: dict[str, Field] = {
        "offset": (decode_offset_commit, lambda n: of(offset=n), *OFFSETS),
        "commit time": (decode_offset_commit, lambda n: of(commit_timestamp_ms=n), *TIMES),
    }
    if version >= 3:
        epochs = (decode_offset_commit, lambda n: of(leader_epoch=n), *FROM_MINUS_ONE)
        fields["leader epoch"] = epochs
    return {f"{name} of a commit {version}": field for name, field in fields.items()}


def infos(version: int) -> dict[str, Field]:
    def subscribed(sums: dict[TaskId, int]) -> bytes:
        return subscription_info(replace(INFO, version=version, offset_sums=sums))

    def given(**changes: Any) -> bytes:
        return assignment_info(replace(GIVEN, version=version, **changes))

    def on_host(number: int) -> bytes:
        return given(active_by_host={HostInfo("a", 1): (TopicPartition("orders", number),)})

    read, take = decode_subscription_info, decode_assignment_info
    zero = TaskId(0, 0)
    fields: dict[str, Field] = {
        "reported subtopology": (read, lambda n: subscribed({TaskId(n, 0): -2}), *NUMBERS),
        "reported task": (read, lambda n: subscribed({TaskId(0, n): -3}), *NUMBERS),
        "given subtopology": (take, lambda n: given(active=(TaskId(n, 0),)), *NUMBERS),
        "given task": (take, lambda n: given(active=(TaskId(0, n),)), *NUMBERS),
        "given standby": (take, lambda n: given(standby={TaskId(0, n): ()}), *NUMBERS),
        "source of a standby": (
            take,
            lambda n: given(standby={zero: (TopicPartition("orders", n),)}),
            *NUMBERS,
        ),
    }
    if version >= 2:
        fields["partition of a host"] = (take, on_host, *NUMBERS)
    if version >= 7:
        fields["offset sum"] = (read, lambda n: subscribed({zero: n}), *SUMS)
        times = [0, LATEST_MS], [-1, LONG_MIN]
        fields["next rebalance"] = (take, lambda n: given(next_rebalance_ms=n), *times)
    return {f"{name}, version {version}": field for name, field in fields.items()}


def workers(version: int) -> dict[str, Field]:
    def told(**changes: Any) -> bytes:
        return worker_assignment(replace(TOLD, version=version, **changes))

    def given(task: int) -> ConnectorsAndTasks:
        return ConnectorsAndTasks((), (ConnectorTaskId("sink", task),))

    read, take = decode_worker_assignment, decode_worker_state
    numbers = [-1, 0, NUMBER_MAX], [-2, NUMBER_MAX + 1, (1 << 31) - 1]
    fields: dict[str, Field] = {
        "config offset given": (read, lambda n: told(config_offset=n), *FROM_MINUS_ONE_LONG),
        "config offset": (
            take,
            lambda n: worker_state(WorkerState(version, "", n, None)),
            *FROM_MINUS_ONE_LONG,
        ),
        "task given": (read, lambda n: told(assigned=given(n)), *numbers),
    }
    if version:
        fields["task revoked"] = (read, lambda n: told(revoked=given(n)), *numbers)
        delays = [0, (1 << 31) - 1], [-1, -(1 << 31)]
        fields["delay"] = (read, lambda n: told(delay_ms=n), *delays)
    return {f"{name}, Connect version {version}": field for name, field in fields.items()}


FIELDS: dict[str, Field] = {
    "partition of a key": (
        decode_key,
        lambda n: wire.offset_key(OffsetKey("shop", "orders", n)),
        *NUMBERS,
    ),
    "generation": (
        decode_group_metadata,
        lambda n: wire.group_metadata(replace(METADATA, generation=n), 3),
        *FROM_MINUS_ONE,
    ),
    "state time": (
        decode_group_metadata,
        lambda n: wire.group_metadata(replace(METADATA, state_timestamp_ms=n), 3),
        *KNOWN_TIMES,
    ),
    "owned partition": (
        decode_subscription,
        lambda n: wire.subscription(replace(SUBSCRIPTION, owned=(TopicPartition("orders", n),))),
        *NUMBERS,
    ),
    "generation of a subscription": (
        decode_subscription,
        lambda n: wire.subscription(replace(SUBSCRIPTION, generation=n)),
        *FROM_MINUS_ONE,
    ),
    "assigned partition": (
        decode_assignment,
        lambda n: wire.assignment(ConsumerAssignment(3, (TopicPartition("orders", n),), None)),
        *NUMBERS,
    ),
    **{name: field for version in range(5) for name, field in commits(version).items()},
    **{name: field for version in range(1, 12) for name, field in infos(version).items()},
    **{name: field for version in range(3) for name, field in workers(version).items()},
    **new_groups(),
}
