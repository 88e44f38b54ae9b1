"""The configs of applications as learned from their generations, and the records of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from caughtup.models.assignment.configs import Release
from caughtup.models.assignors.kafka.racks.rack_aware import Costs
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

#: The most groups with values, because records about groups that don't exist may arrive.
MOST_GROUPS = 20_000


class LearnedUntil(NamedTuple):
    """The configs learned from all generations up to one, whose state changed at ``as_of_ms``.

    ``placed``: changelog → subtopology, as far as the positions of copies showed it.
    """

    learned: Learned
    generation: int
    as_of_ms: int
    placed: Mapping[str, int] = {}


class LearnedConfigs:
    """The learned configs of each group, as immutable values."""

    def __init__(self) -> None:
        self._known: dict[str, LearnedUntil] = {}

    def of(self, group: str, told: ToldConfigs) -> Learned:
        """Return the learned configs of a group, together with ``told`` from its settings."""
        known = self._known.get(group)
        return Learned(told) if known is None else with_settings(known.learned, told)

    def holds(self, generation: StreamsGeneration) -> bool:
        """Return whether a generation was learned from already, which must happen only once."""
        known = self._known.get(generation.group)
        return (
            known is not None
            and generation.generation <= known.generation
            and generation.as_of_ms <= known.as_of_ms
        )

    def placed(self, group: str) -> Mapping[str, int]:
        """Return the subtopologies of a group's changelogs that the positions of copies showed."""
        known = self._known.get(group)
        return {} if known is None else known.placed

    def keep(
        self, generation: StreamsGeneration, learned: Learned, placed: Mapping[str, int]
    ) -> None:
        """Store the learned configs after a generation."""
        suspected = bounded(learned.suspected)
        hypotheses = None if learned.hypotheses is None else bounded(learned.hypotheses)
        kept = replace(learned, hypotheses=hypotheses, suspected=suspected)
        known = LearnedUntil(kept, generation.generation, generation.as_of_ms, placed)
        self._known[generation.group] = known

    def restore(self, group: str, known: LearnedUntil | None) -> bool:
        """Store the configs from a record, or remove a group's (None).

        Return False if there are too many groups.
        """
        if known is None:
            self._known.pop(group, None)
            return True
        if group not in self._known and len(self._known) >= MOST_GROUPS:
            return False
        self._known[group] = known
        return True

    def forget(self, group: str) -> bool:
        """Remove a group; return whether it was stored."""
        return self._known.pop(group, None) is not None

    def newest(self, group: str) -> LearnedUntil | None:
        """Return a group's learned configs for its record; None without any."""
        return self._known.get(group)

    def groups(self) -> set[str]:
        """Return the stored groups."""
        return set(self._known)

    def each(self) -> Iterator[tuple[str, LearnedUntil]]:
        """Yield each group with its learned configs, sorted by group."""
        yield from sorted(self._known.items(), key=lambda item: item[0])


def learned_record(group: str, known: LearnedUntil) -> LearnedRecord:
    """Return the record of a group's learned configs."""
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
    """Return the group and the learned configs of a record, None for a tombstone.

    ``clock_ms`` is the present time by our clock. Raises RefusedError.
    """
    group = decode_group(key)
    if value is None:
        return group, None
    record = FORMAT.decode(value)
    require_agreement(group, record.group)
    require_past(record.as_of_ms, clock_ms)
    return group, learned_until(record)


def learned_until(record: LearnedRecord) -> LearnedUntil:
    """Return the learned configs of a record. Raises RefusedError."""
    probing = or_none(record.probing_rebalance_interval_ms)
    hypotheses = or_none(record.hypotheses)
    if hypotheses == []:
        raise RefusedError(BAD_TYPE, "hypotheses: is empty")
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
        raise RefusedError(BAD_TYPE, f"{name}: Kafka does not accept {low}")
    return span
