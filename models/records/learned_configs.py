"""caughtup-learned-configs: what applications' configs can be, by what their leaders decided."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec  # noqa: TID251 - allowed here

from caughtup.models.assignment.releases import Release
from caughtup.models.assignors.kafka.racks.rack_aware import Costs
from caughtup.models.decisions.learned_configs import LearnedUntil
from caughtup.models.learning.learned import Learned
from caughtup.models.learning.ranges import (
    ANY,
    INT_MAX,
    LAG,
    MOST_RANGES,
    RELEASE,
    STANDBYS,
    WARM_UPS,
    Algorithm,
    ConfigRange,
    Hypotheses,
    IntSpan,
)
from caughtup.models.learning.told import ToldConfigs
from caughtup.models.parameters import MOST_TAGS
from caughtup.models.records.decoding import (
    BAD_TYPE,
    RecordFormat,
    RefusedError,
    require_agreement,
    require_past,
)
from caughtup.models.records.fields import (
    ABSENT,
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
    or_absent,
    or_none,
)
from caughtup.models.records.keys import decode_group

Strategy = Literal["none", "min_traffic", "balance_subtopology"]
#: A family of releases, by its first one.
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
    """The configs in the settings when that was learned; other settings begin anew, or narrow it.

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

    @classmethod
    def from_told(cls, told: ToldConfigs) -> ToldRecord:
        """Write down what was told."""
        tags = None if told.tags is None else list(told.tags)
        assignor: Assignor | None = told.assignor  # type: ignore[assignment]
        strategy: Strategy | None = told.strategy  # type: ignore[assignment]
        return cls(
            dict(told.configs),
            or_absent(tags),
            or_absent(assignor),
            or_absent(strategy),
            *map(or_absent, told.costs),
        )

    def to_told(self) -> ToldConfigs:
        """Return what was told."""
        tags = or_none(self.tags)
        return ToldConfigs(
            self.configs,
            None if tags is None else tuple(tags),
            or_none(self.assignor),
            or_none(self.strategy),
            (or_none(self.traffic_cost), or_none(self.non_overlap_cost)),
        )


class RangeRecord(Part, omit_defaults=True):
    """Configs of which each combination may be the truth: the least and the greatest value of each.

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

    @classmethod
    def from_range(cls, one: ConfigRange) -> RangeRecord:
        """Write a range down."""
        assignor: Assignor = one.algorithm.assignor  # type: ignore[assignment]
        strategy: Strategy = one.algorithm.strategy  # type: ignore[assignment]
        costs = None if one.algorithm.costs is None else list(one.algorithm.costs)
        releases: list[Family] = [Release(n).name for n in one.releases]  # type: ignore[misc]
        tags = list(one.algorithm.tags)
        return cls(
            assignor,
            tags,
            list(one.standbys),
            list(one.warm_ups),
            list(one.lag),
            releases,
            strategy,
            or_absent(costs),
        )

    def to_range(self) -> ConfigRange:
        """Return the range. Raises RefusedError."""
        return ConfigRange(
            Algorithm(
                self.assignor,
                tuple(self.tags),
                self.strategy,
                None if isinstance(self.costs, Absent) else Costs(*self.costs),
            ),
            _span(STANDBYS, self.num_standby_replicas),
            _span(WARM_UPS, self.max_warmup_replicas),
            _span(LAG, self.acceptable_recovery_lag),
            _span(RELEASE, [Release[name] for name in self.releases]),
        )


_Ranges = Annotated[list[RangeRecord], msgspec.Meta(max_length=MOST_RANGES)]


class LearnedRecord(Record, omit_defaults=True):
    """What is known of an application's configs; a tombstone: the group is gone.

    group: the application's group, as in the key.
    generation: the last generation that it was learned from.
    as_of_ms: when that one's state changed, by its coordinator's clock; -1: not known.
    told: the configs in the settings.
    hypotheses: ranges of which one has the truth, as far as is known; absent where no generation
        could be judged yet.
    since: the first generation from which on they explain every decision that can be judged.
    explained: the number of generations with a matched decision.
    suspected: ranges that explain a decision which contradicts all of the above, and later ones.
    suspected_since: the generation of that decision.
    probing_rebalance_interval_ms: the least and the greatest interval, by when leaders asked for
        the next rebalance; absent where none did.
    changelogs: the subtopology of each changelog of which names and widths don't tell it, but what
        copies had of it did.
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

    @classmethod
    def from_learned(cls, group: str, known: LearnedUntil) -> LearnedRecord:
        """Write down what is known of a group's configs."""
        learned = known.learned
        probing = None if learned.probing is None else list(learned.probing)
        return cls(
            schema=FORMAT.schema,
            group=group,
            generation=known.generation,
            as_of_ms=known.as_of_ms,
            told=ToldRecord.from_told(learned.told),
            hypotheses=or_absent(_written(learned.hypotheses)),
            since=or_absent(learned.since),
            explained=learned.explained,
            suspected=or_absent(_written(learned.suspected or None)),
            suspected_since=or_absent(learned.suspected_since),
            probing_rebalance_interval_ms=or_absent(probing),
            changelogs=dict(known.placed),
            without_ends=learned.without_ends,
        )

    def to_learned(self) -> LearnedUntil:
        """Return what was known. Raises RefusedError."""
        probing = or_none(self.probing_rebalance_interval_ms)
        hypotheses = or_none(self.hypotheses)
        if hypotheses == []:
            raise RefusedError(BAD_TYPE, "no hypothesis is left")
        learned = Learned(
            told=self.told.to_told(),
            hypotheses=None if hypotheses is None else _read(hypotheses),
            since=or_none(self.since),
            explained=self.explained,
            suspected=_read(or_none(self.suspected) or []),
            suspected_since=or_none(self.suspected_since),
            probing=None if probing is None else _span("probing", probing),
            without_ends=self.without_ends,
        )
        return LearnedUntil(learned, self.generation, self.as_of_ms, self.changelogs)


#: Twice as many ranges as there may be, with five tags of the longest name that is usual.
FORMAT = RecordFormat(LearnedRecord, schemas=(1,), most_bytes=256 << 10)


def read_learned(
    key: bytes | None, value: bytes | None, clock_ms: int
) -> tuple[str, LearnedUntil | None]:
    """Decode a record: the group, and what is known of its configs; None: it is gone.

    ``clock_ms`` is now, by our clock. Raises RefusedError.
    """
    group = decode_group(key)
    if value is None:
        return group, None
    record = FORMAT.decode(value)
    require_agreement(group, record.group)
    require_past(record.as_of_ms, clock_ms)
    return group, record.to_learned()


def _written(hypotheses: Hypotheses | None) -> list[RangeRecord] | None:
    return None if hypotheses is None else [RangeRecord.from_range(one) for one in hypotheses]


def _read(ranges: list[RangeRecord]) -> Hypotheses:
    return tuple(one.to_range() for one in ranges)


def _span(name: str, bounds: list[int]) -> IntSpan:
    low, high = bounds
    if low > high:
        raise RefusedError(BAD_TYPE, f"{name}: {low} is more than {high}")
    span = IntSpan(low, high)
    if name in ANY and not span.within(ANY[name]):
        raise RefusedError(BAD_TYPE, f"{name}: Kafka takes no {low}")
    return span
