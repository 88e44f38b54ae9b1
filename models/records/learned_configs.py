"""caughtup-learned-configs: the possible configs of applications, by their leaders' decisions."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec  # noqa: TID251 - allowed here

from caughtup.models.parameters import MOST_TAGS
from caughtup.models.records.decoding import (
    RecordFormat,
)
from caughtup.models.records.fields import (
    ABSENT,
    INT_MAX,
    Absent,
    Count,
    DurationMs,
    Generation,
    Group,
    Int,
    Long,
    Name,
    Offsets,
    Part,
    Record,
    StateTimeMs,
    Topic,
    no_entries,
)

Strategy = Literal["none", "min_traffic", "balance_subtopology"]
#: A family of releases, named after its first release.
Family = Literal["V2_8", "V3_0", "V3_2", "V3_3", "V3_5_2", "V3_7"]
Assignor = Literal["high_availability", "sticky", "public_sticky", "fallback_prior"]
Tags = Annotated[list[Name], msgspec.Meta(max_length=MOST_TAGS)]
_Number = Annotated[int, msgspec.Meta(ge=0, le=INT_MAX)]
_TwoNumbers = Annotated[list[_Number], msgspec.Meta(min_length=2, max_length=2)]
_TwoOffsets = Annotated[list[Offsets], msgspec.Meta(min_length=2, max_length=2)]
_TwoFamilies = Annotated[list[Family], msgspec.Meta(min_length=2, max_length=2)]
_TwoCosts = Annotated[list[Int], msgspec.Meta(min_length=2, max_length=2)]
_TwoTimes = Annotated[list[DurationMs], msgspec.Meta(min_length=2, max_length=2)]


class ToldRecord(Part, omit_defaults=True):
    """The settings' configs at that time; if they change, learning is narrowed or begins again.

    configs: the numbers, by Kafka's names.
    tags: ``rack.aware.assignment.tags``; absent if the settings do not have them.
    assignor: what decides, as ``caughtup assign`` calls it; absent if the settings do not have it.
    strategy: ``rack.aware.assignment.strategy``; absent if the settings do not have it.
    traffic_cost: ``rack.aware.assignment.traffic_cost``; absent if the settings do not have it.
    non_overlap_cost: ``rack.aware.assignment.non_overlap_cost``; absent if the settings do not have it.
    """

    configs: dict[Name, Long]
    tags: Tags | Absent = ABSENT
    assignor: Assignor | Absent = ABSENT
    strategy: Strategy | Absent = ABSENT
    traffic_cost: Int | Absent = ABSENT
    non_overlap_cost: Int | Absent = ABSENT


class RangeRecord(Part, omit_defaults=True):
    """Configs of which each combination is possible: the least and the greatest value of each.

    assignor: what decides, as ``caughtup assign`` calls it.
    tags: its ``rack.aware.assignment.tags``.
    num_standby_replicas: copies.
    max_warmup_replicas: copies.
    acceptable_recovery_lag: offsets.
    releases: families of Kafka Streams' releases, each named after its first release.
    strategy: its ``rack.aware.assignment.strategy``.
    costs: of traffic and of tasks that move, as that strategy uses them; absent: the
        assignor's own.
    """

    assignor: Assignor
    tags: Tags
    num_standby_replicas: _TwoNumbers
    max_warmup_replicas: _TwoNumbers
    acceptable_recovery_lag: _TwoOffsets
    releases: _TwoFamilies
    strategy: Strategy = "none"
    costs: _TwoCosts | Absent = ABSENT


#: The most ranges that are kept of an application.
MOST_RANGES = 256
_Ranges = Annotated[list[RangeRecord], msgspec.Meta(max_length=MOST_RANGES)]


class LearnedRecord(Record, omit_defaults=True):
    """What is known of an application's configs; a tombstone: the group is gone.

    group: the application's group, as in the key.
    generation: the last generation that it was learned from.
    as_of_ms: when the state of that generation changed, by its coordinator's clock; -1: not known.
    told: the configs in the settings.
    hypotheses: ranges, one of which has the application's configs, as far as is known; absent if
        no generation could be judged yet.
    since: the first generation from which on the hypotheses explain every decision that can be
        judged.
    explained: the number of generations with a matched decision.
    suspected: ranges that explain a decision which contradicts all of the above, and later ones.
    suspected_since: the generation of that decision.
    probing_rebalance_interval_ms: the least and the greatest interval, by when leaders asked for
        the next rebalance; absent where none did.
    changelogs: the subtopology of each changelog that caughtup found by the offsets that copies
        had of it, since names and partition counts do not show it.
    without_ends: the number of generations that only a leader without end offsets can have decided.
    """

    group: Group
    generation: Generation
    as_of_ms: StateTimeMs
    told: ToldRecord
    hypotheses: _Ranges | Absent = ABSENT
    since: Generation | Absent = ABSENT
    explained: Count = 0
    suspected: _Ranges | Absent = ABSENT
    suspected_since: Generation | Absent = ABSENT
    probing_rebalance_interval_ms: _TwoTimes | Absent = ABSENT
    changelogs: dict[Topic, _Number] = no_entries()
    without_ends: Count = 0


#: Enough for twice ``MOST_RANGES`` with five tags of a long name.
FORMAT = RecordFormat(LearnedRecord, schemas=(1,), most_bytes=256 << 10)
