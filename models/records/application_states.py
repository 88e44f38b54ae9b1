"""caughtup-application-states: what an application's leader saw at a rebalance, and did."""

from __future__ import annotations

from caughtup.models.decisions.inputs.application_state import (
    ApplicationState,
    read_application_state,
)
from caughtup.models.errors import CaughtupError
from caughtup.models.records.decoding import BAD_TYPE, RecordFormat, RefusedError, require_agreement
from caughtup.models.records.fields import (
    ABSENT,
    Absent,
    Count,
    Group,
    Lag,
    Name,
    Part,
    ProcessUuid,
    Record,
    Task,
    TimeMs,
    builtins_of,
)
from caughtup.models.records.keys import decode_group
from caughtup.models.records.scenarios import Configs, ScenarioClient, ScenarioTask


class GivenTasks(Part):
    """What a process was given."""

    active: list[Task] | Absent = ABSENT
    standby: list[Task] | Absent = ABSENT


class OutcomeRecord(Part):
    """What the follower did: the recommendation that it followed, or why it didn't.

    ``reason`` is a code, ``message`` a sentence. ``follow_up_ms``: in how many ms it wants the
    next rebalance.
    """

    reason: Name
    followed: Name | Absent | None = ABSENT
    message: str | Absent | None = ABSENT
    assignment: dict[ProcessUuid, GivenTasks] | Absent = ABSENT
    follow_up_ms: Count | Absent | None = ABSENT


class FollowerRecord(Part):
    """What its decision depends on besides the application: see ``Basis``."""

    waited: Count
    follow_up_ms: Count
    max_age_ms: Count
    follow_ups: Count
    newest: Name | Absent | None = ABSENT
    age_ms: Count | Absent | None = ABSENT
    repeated: Count | Absent | None = ABSENT


class ApplicationStateRecord(Record):
    """One rebalance as its leader saw it.

    ``greatest_lags``: the lag of each client that doesn't tell its own of a task. ``state_id``
    names this telling, at ``published_at_ms`` by the application's clock.
    """

    state_id: Name
    config: Configs
    tasks: dict[Task, ScenarioTask]
    clients: dict[ProcessUuid, ScenarioClient]
    outcome: OutcomeRecord
    greatest_lags: dict[Task, Lag] | Absent = ABSENT
    follower: FollowerRecord | Absent = ABSENT
    group: Group | Absent = ABSENT
    published_at_ms: TimeMs | Absent = ABSENT


#: A large application has a lag for each task on each client.
FORMAT = RecordFormat(ApplicationStateRecord, schemas=(1,), most_bytes=64 << 20)


def read_state(
    key: bytes | None, value: bytes | None, at_ms: int
) -> tuple[str, ApplicationState | None]:
    """Decode a record: the group, and what its leader told; None: it is to be forgotten.

    ``at_ms`` is the record's timestamp. Raises RefusedError.
    """
    group = decode_group(key)
    if value is None:
        return group, None
    record = FORMAT.decode(value)
    if record.group is not ABSENT:
        require_agreement(group, record.group)
    try:
        return group, read_application_state(builtins_of(record), at_ms)
    except CaughtupError as error:
        raise RefusedError(BAD_TYPE, error.message) from None
