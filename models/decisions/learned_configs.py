"""What was learned of applications' configs, each up to a generation: kept while a group is there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from caughtup.models.assignment.releases import Release
from caughtup.models.assignors.kafka.racks.rack_aware import Costs
from caughtup.models.decisions.last_by_group import MOST_GROUPS
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.learning.learned import Learned, with_settings
from caughtup.models.learning.ranges import (
    ANY,
    LAG,
    RELEASE,
    STANDBYS,
    WARM_UPS,
    Algorithm,
    ConfigRange,
    Hypotheses,
    IntSpan,
    bounded,
)
from caughtup.models.learning.told import ToldConfigs
from caughtup.models.records.decoding import (
    BAD_TYPE,
    RefusedError,
    require_agreement,
    require_past,
)
from caughtup.models.records.fields import ABSENT, or_absent, or_none
from caughtup.models.records.keys import decode_group
from caughtup.models.records.learned_configs import (
    FORMAT,
    Assignor,
    LearnedRecord,
    RangeRecord,
    Strategy,
    ToldRecord,
)


class LearnedUntil(NamedTuple):
    """What is known by all generations up to one, whose state changed at ``as_of_ms``.

    ``placed``: changelog → subtopology, where what copies had told it.
    """

    learned: Learned
    generation: int
    as_of_ms: int
    placed: Mapping[str, int] = {}


class LearnedConfigs:
    """What is known of each group's configs. Nothing that is in it is ever changed."""

    def __init__(self) -> None:
        self._known: dict[str, LearnedUntil] = {}

    def of(self, group: str, told: ToldConfigs) -> Learned:
        """Return what is known of a group whose settings tell so much."""
        known = self._known.get(group)
        return Learned(told) if known is None else with_settings(known.learned, told)

    def holds(self, generation: StreamsGeneration) -> bool:
        """Return whether a generation was learned from: it is to be learned from but once."""
        known = self._known.get(generation.group)
        return (
            known is not None
            and generation.generation <= known.generation
            and generation.as_of_ms <= known.as_of_ms
        )

    def placed(self, group: str) -> Mapping[str, int]:
        """Return to which subtopologies changelogs of a group belong, as what copies had told."""
        known = self._known.get(group)
        return {} if known is None else known.placed

    def keep(
        self, generation: StreamsGeneration, learned: Learned, placed: Mapping[str, int]
    ) -> None:
        """Keep what is known once a generation was learned from."""
        suspected = bounded(learned.suspected)
        hypotheses = None if learned.hypotheses is None else bounded(learned.hypotheses)
        kept = replace(learned, hypotheses=hypotheses, suspected=suspected)
        known = LearnedUntil(kept, generation.generation, generation.as_of_ms, placed)
        self._known[generation.group] = known

    def restore(self, group: str, known: LearnedUntil | None) -> bool:
        """Keep what was written down earlier; None forgets.

        Returns False if there are too many groups for another one.
        """
        if known is None:
            self._known.pop(group, None)
            return True
        if group not in self._known and len(self._known) >= MOST_GROUPS:
            return False
        self._known[group] = known
        return True

    def forget(self, group: str) -> bool:
        """Forget a group; return whether anything was known of it."""
        return self._known.pop(group, None) is not None

    def newest(self, group: str) -> LearnedUntil | None:
        """Return what is known of a group as it is to be written down; None without anything."""
        return self._known.get(group)

    def groups(self) -> set[str]:
        """Name the groups of which anything is known."""
        return set(self._known)

    def each(self) -> Iterator[tuple[str, LearnedUntil]]:
        """Yield what is known of each group, by group, sorted."""
        yield from sorted(self._known.items(), key=lambda item: item[0])


def learned_record(group: str, known: LearnedUntil) -> LearnedRecord:
    """Return the record of what is known of a group's configs."""
    learned = known.learned
    return LearnedRecord(
        schema=FORMAT.schema,
        group=group,
        generation=known.generation,
        as_of_ms=known.as_of_ms,
        told=_told_record(learned.told),
        hypotheses=ABSENT if learned.hypotheses is None else _range_records(learned.hypotheses),
        since=or_absent(learned.since),
        explained=learned.explained,
        suspected=_range_records(learned.suspected) if learned.suspected else ABSENT,
        suspected_since=or_absent(learned.suspected_since),
        probing_rebalance_interval_ms=ABSENT if learned.probing is None else list(learned.probing),
        changelogs=dict(known.placed),
        without_ends=learned.without_ends,
    )


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
    return group, learned_until(record)


def learned_until(record: LearnedRecord) -> LearnedUntil:
    """Return what a record knows, with typed spans. Raises RefusedError."""
    probing = or_none(record.probing_rebalance_interval_ms)
    hypotheses = or_none(record.hypotheses)
    if hypotheses == []:
        raise RefusedError(BAD_TYPE, "no hypothesis is left")
    told = record.told
    tags = or_none(told.tags)
    learned = Learned(
        told=ToldConfigs(
            told.configs,
            None if tags is None else tuple(tags),
            or_none(told.assignor),
            or_none(told.strategy),
            (or_none(told.traffic_cost), or_none(told.non_overlap_cost)),
        ),
        hypotheses=None if hypotheses is None else tuple(map(_range, hypotheses)),
        since=or_none(record.since),
        explained=record.explained,
        suspected=tuple(map(_range, or_none(record.suspected) or ())),
        suspected_since=or_none(record.suspected_since),
        probing=None if probing is None else _span("probing", probing),
        without_ends=record.without_ends,
    )
    return LearnedUntil(learned, record.generation, record.as_of_ms, record.changelogs)


def _told_record(told: ToldConfigs) -> ToldRecord:
    assignor: Assignor | None = told.assignor  # type: ignore[assignment]
    strategy: Strategy | None = told.strategy  # type: ignore[assignment]
    return ToldRecord(
        dict(told.configs),
        ABSENT if told.tags is None else list(told.tags),
        or_absent(assignor),
        or_absent(strategy),
        *map(or_absent, told.costs),
    )


def _range_records(hypotheses: Hypotheses) -> list[RangeRecord]:
    return [
        RangeRecord(
            one.algorithm.assignor,  # type: ignore[arg-type]
            list(one.algorithm.tags),
            list(one.standbys),
            list(one.warm_ups),
            list(one.lag),
            [Release(number).name for number in one.releases],  # type: ignore[misc]
            one.algorithm.strategy,  # type: ignore[arg-type]
            ABSENT if one.algorithm.costs is None else list(one.algorithm.costs),
        )
        for one in hypotheses
    ]


def _range(record: RangeRecord) -> ConfigRange:
    costs = or_none(record.costs)
    return ConfigRange(
        Algorithm(
            record.assignor,
            tuple(record.tags),
            record.strategy,
            None if costs is None else Costs(*costs),
        ),
        _span(STANDBYS, record.num_standby_replicas),
        _span(WARM_UPS, record.max_warmup_replicas),
        _span(LAG, record.acceptable_recovery_lag),
        _span(RELEASE, [Release[name] for name in record.releases]),
    )


def _span(name: str, bounds: list[int]) -> IntSpan:
    low, high = bounds
    if low > high:
        raise RefusedError(BAD_TYPE, f"{name}: {low} is more than {high}")
    span = IntSpan(low, high)
    if name in ANY and not span.within(ANY[name]):
        raise RefusedError(BAD_TYPE, f"{name}: Kafka takes no {low}")
    return span
