"""An application's configs for display: the values of each, and how they are known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from caughtup.models.learning.contradiction import (
    ASSIGNOR,
    NAMES,
    WOULD_TELL,
    is_open,
    values_in_words,
)
from caughtup.models.learning.learned import Learned, told_names
from caughtup.models.learning.probing_interval import PROBING, whole_minutes
from caughtup.models.learning.ranges import (
    ASSIGNORS,
    LAG,
    STANDBYS,
    WARM_UPS,
    ConfigRange,
    Hypotheses,
    IntSpan,
    distance,
)
from caughtup.models.learning.told import possible_hypotheses
from caughtup.models.parameters import DEFAULTS, NON_OVERLAP_COST, STRATEGY, TAGS, TRAFFIC_COST
from caughtup.models.records.fields import ABSENT
from caughtup.models.records.recommendations import KnownConfigRecord, Provenance

_TELLS_COSTS = (
    "the application's own configs, since caughtup tries only a few ratios of the two costs"
)
_TELLS_PROBING = (
    "a generation with a warm-up whose record the service reads as soon as it is written"
)
#: Kafka's defaults of all that hypotheses are about.
_DEFAULTS: Mapping[str, int | str] = {
    **DEFAULTS,
    TAGS: "",
    ASSIGNOR: ASSIGNORS[0],
    STRATEGY: "none",
}


def known_configs(
    learned: Learned,
    tag_keys: Iterable[str] | None = None,
    standbys: int = DEFAULTS[STANDBYS],
) -> tuple[KnownConfigRecord, ...]:
    """Return what is known of each config.

    ``tag_keys`` are the client tags that all members have, None if unknown. Configs of racks are
    left out if they can't matter. ``standbys`` is the number that tasks seem to have.
    """
    hypotheses = learned.possible or possible_hypotheses(
        learned.told, (), racked=learned.told.tells_racks
    )
    keys = {key for one in hypotheses for key in one.algorithm.tags}.union(tag_keys or ())
    racked = any(one.algorithm.strategy != "none" for one in hypotheses)
    everything = possible_hypotheses(learned.told, keys, racked=racked)
    going_on = chosen(hypotheses, standbys)
    told = set(told_names(learned.told)) - ({STRATEGY} if learned.told.strategy is None else set())
    values: Mapping[str, int | str] = {
        STANDBYS: going_on.standbys.low,
        WARM_UPS: going_on.warm_ups.low,
        LAG: going_on.lag.low,
        TAGS: ",".join(going_on.algorithm.tags),
        ASSIGNOR: going_on.algorithm.assignor,
        STRATEGY: learned.told.strategy or going_on.algorithm.strategy,
    }
    found: list[KnownConfigRecord] = []
    for name in NAMES if racked or STRATEGY in told else NAMES[:-1]:
        text = values_in_words(name, hypotheses)
        learnt = text != values_in_words(name, everything)
        untagged = name == TAGS and tag_keys is not None and not keys
        provenance: Provenance = "learned" if learnt else "read" if untagged else "assumed"
        if name in told:
            provenance = "told"
        if name == STRATEGY:
            text = learned.told.strategy or _strategies(hypotheses)
        generations = (provenance == "learned" and learned.explained) or ABSENT
        tells = WOULD_TELL[name] if is_open(name, hypotheses) else ABSENT
        by_default = tells is not ABSENT and values[name] == _DEFAULTS[name]
        found.append(
            KnownConfigRecord(
                name, text, values[name], provenance, generations, tells, by_default or ABSENT
            )
        )
    return (*found, *_costs(learned, hypotheses, going_on), _probing(learned))


def _strategies(hypotheses: Hypotheses) -> str:
    return " or ".join(sorted({one.algorithm.strategy for one in hypotheses}))


def _costs(
    learned: Learned, hypotheses: Hypotheses, going_on: ConfigRange
) -> Iterator[KnownConfigRecord]:
    """Yield the rack-aware costs in the settings, or that may differ from the assignor's own.

    Of unconfigured costs only some ratios are tried.
    """
    pairs = [one.algorithm.costs for one in hypotheses if one.algorithm.costs is not None]
    for place, name in enumerate((TRAFFIC_COST, NON_OVERLAP_COST)):
        told = learned.told.costs[place]
        if told is not None:
            yield KnownConfigRecord(name, str(told), told, "told")
        elif going_on.algorithm.costs is not None and learned.told.costs == (None, None):
            text = " or ".join(sorted({str(pair[place]) for pair in pairs}))
            value = going_on.algorithm.costs[place]
            explained = learned.explained or ABSENT
            yield KnownConfigRecord(name, text, value, "learned", explained, _TELLS_COSTS)


def _probing(learned: Learned) -> KnownConfigRecord:
    span, told = learned.probing, learned.told.configs.get(PROBING)
    if told is not None:
        return KnownConfigRecord(PROBING, str(told), told, "told")
    provenance: Provenance = "assumed" if span is None else "read"
    if span is None:
        value, text = DEFAULTS[PROBING], "60000 or more"
    else:
        default = DEFAULTS[PROBING]
        likely = default if span.low <= default <= span.high else whole_minutes(span)
        value = span.low if likely is None else likely
        text = str(span.low) if span.low == span.high else f"{span.low} to {span.high}"
    by_default = value == DEFAULTS[PROBING] and text != str(value)
    return KnownConfigRecord(
        PROBING, text, value, provenance, ABSENT, _TELLS_PROBING, by_default or ABSENT
    )


def chosen(hypotheses: Hypotheses, standbys: int = DEFAULTS[STANDBYS]) -> ConfigRange:
    """Return one of the hypotheses: Kafka's defaults, or the possible values nearest to them.

    Its number of warm-ups is the default if any hypothesis with its assignor allows that, else the
    fewest that any allows. ``standbys`` is the number that tasks seem to have,
    instead of the default.
    """
    best = min(hypotheses, key=lambda one: distance(one, standbys))
    same = [one for one in hypotheses if one.algorithm.assignor == best.algorithm.assignor]
    default = IntSpan(DEFAULTS[WARM_UPS], DEFAULTS[WARM_UPS])
    may_be_default = any(one.warm_ups.meet(default) for one in same)
    warm_ups = default.low if may_be_default else min(one.warm_ups.low for one in same)
    number = best.standbys.nearest(standbys)
    lag = best.lag.nearest(DEFAULTS[LAG])
    return ConfigRange(
        best.algorithm,
        IntSpan(number, number),
        IntSpan(warm_ups, warm_ups),
        IntSpan(lag, lag),
        best.releases,
    )
