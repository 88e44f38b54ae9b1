"""caughtup-application-states: the inputs and the decision of an application's leader."""

from __future__ import annotations

from caughtup.models.records.decoding import RecordFormat
from caughtup.models.records.fields import (
    ABSENT,
    Absent,
    Count,
    DurationMs,
    Group,
    Lag,
    Name,
    Part,
    ProcessUuid,
    Record,
    Task,
    TimeMs,
)
from caughtup.models.records.scenarios import Configs, ScenarioClient, ScenarioTask


class GivenTasks(Part):
    """What a process was given.

    active: its active tasks.
    standby: its standby tasks, warm-ups included.
    """

    active: list[Task] | Absent = ABSENT
    standby: list[Task] | Absent = ABSENT


class OutcomeRecord(Part):
    """What the follower did.

    reason: a code: ``followed``, or why it didn't follow: ``no_recommendation``, ``moved_since`` …
    followed: the ``decision_id`` that it followed; null or absent: none.
    message: a sentence.
    assignment: by process, the tasks that it was assigned.
    follow_up_ms: the time after which the follower asks for the next rebalance; null or absent: it
        asks for none.
    """

    reason: Name
    followed: Name | Absent | None = ABSENT
    message: str | Absent | None = ABSENT
    assignment: dict[ProcessUuid, GivenTasks] | Absent = ABSENT
    follow_up_ms: DurationMs | Absent | None = ABSENT


class FollowerRecord(Part):
    """What its decision depends on besides the application: ``Basis``.

    waited: the follow-ups that had passed without a valid recommendation.
    follow_up_ms: its config, ``caughtup.follow.up.ms``.
    max_age_ms: its config, ``caughtup.recommendation.max.age.ms``.
    follow_ups: its config, ``caughtup.follow.ups``.
    newest: the ``decision_id`` of the newest recommendation that it had read.
    age_ms: how old that was, at least.
    repeated: follow-ups in a row that brought nothing new.
    """

    waited: Count
    follow_up_ms: DurationMs
    max_age_ms: DurationMs
    follow_ups: Count
    newest: Name | Absent | None = ABSENT
    age_ms: DurationMs | Absent | None = ABSENT
    repeated: Count | Absent | None = ABSENT


class ApplicationStateRecord(Record):
    """One rebalance as its leader saw it; a tombstone: readers forget it.

    state_id: identifies this record.
    config: the application's configs, by Kafka's names.
    tasks: by id.
    clients: by process, as it was before the rebalance.
    outcome: what the follower did.
    greatest_lags: by task, the lag of each client whose ``lags`` leave it out.
    follower: the other inputs of its decision.
    group: the application's group, as in the key.
    published_at_ms: when, by the application's clock.
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
