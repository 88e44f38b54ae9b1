"""An application's configs as people are told them: each with its values, and how they are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from caughtup.models.learning.contradiction import ASSIGNOR, NAMES, WOULD_TELL, is_open, text_of
from caughtup.models.learning.learned import Learned
from caughtup.models.learning.probing import PROBING, whole_minutes
from caughtup.models.learning.ranges import (
    ASSIGNORS,
    LAG,
    STANDBYS,
    WARM_UPS,
    ConfigRange,
    Hypotheses,
    Span,
    possible,
)
from caughtup.models.parameters import DEFAULTS, TAGS

_TELLS_PROBING = "a warm-up, and a record that is read as soon as it is written"


@dataclass(frozen=True, slots=True)
class KnownConfig:
    """A config, the values it can have in words, and how that is known.

    ``provenance`` is ``told`` by the settings, ``read`` from the wire, ``learned`` from so many
    ``generations``, or ``assumed``: nothing rules anything out. ``value`` is what to go on with, in
    Kafka's terms. ``would_tell``: what would narrow it further, "" where there is one value.
    """

    name: str
    text: str
    value: int | str | None
    provenance: str
    generations: int
    would_tell: str


def known_configs(learned: Learned) -> tuple[KnownConfig, ...]:
    """Say what is known of each config."""
    hypotheses = learned.possible or possible(learned.told, ())
    keys = {key for one in hypotheses for key in one.algorithm.tags}
    everything = possible(learned.told, keys)
    going_on = chosen(hypotheses)
    told = {
        *learned.told.configs,
        *((TAGS,) if learned.told.tags is not None else ()),
        *((ASSIGNOR,) if learned.told.assignor is not None else ()),
    }
    values: Mapping[str, int | str] = {
        STANDBYS: going_on.standbys.low,
        WARM_UPS: going_on.warm_ups.low,
        LAG: going_on.lag.low,
        TAGS: ",".join(going_on.algorithm.tags),
        ASSIGNOR: going_on.algorithm.assignor,
    }
    found: list[KnownConfig] = []
    for name in NAMES:
        text = text_of(name, hypotheses)
        learnt = text != text_of(name, everything)
        provenance = "told" if name in told else "learned" if learnt else "assumed"
        generations = learned.explained if provenance == "learned" else 0
        tells = WOULD_TELL[name] if is_open(name, hypotheses) else ""
        found.append(KnownConfig(name, text, values[name], provenance, generations, tells))
    return (*found, _probing(learned))


def _probing(learned: Learned) -> KnownConfig:
    span = learned.probing
    if span is None:
        value, text, provenance = DEFAULTS[PROBING], "60000 or more", "assumed"
    else:
        default = DEFAULTS[PROBING]
        likely = default if span.low <= default <= span.high else whole_minutes(span)
        value, provenance = (span.low if likely is None else likely), "read"
        text = str(span.low) if span.low == span.high else f"{span.low} to {span.high}"
    return KnownConfig(PROBING, text, value, provenance, 0, _TELLS_PROBING)


def chosen(hypotheses: Hypotheses) -> ConfigRange:
    """Choose one of the hypotheses: Kafka's defaults, or what is nearest to them of what is left.

    The fewest warm-ups that are left, so that what is recommended needs no more than there are.
    """
    best = min(hypotheses, key=_distance)
    standbys = _nearest(best.standbys, DEFAULTS[STANDBYS])
    lag = _nearest(best.lag, DEFAULTS[LAG])
    return ConfigRange(
        best.algorithm,
        Span(standbys, standbys),
        Span(best.warm_ups.low, best.warm_ups.low),
        Span(lag, lag),
    )


def _distance(one: ConfigRange) -> tuple[int, int, int, int, int]:
    return (
        ASSIGNORS.index(one.algorithm.assignor),
        len(one.algorithm.tags),
        _off(one, STANDBYS),
        _off(one, WARM_UPS),
        _off(one, LAG),
    )


def _off(one: ConfigRange, name: str) -> int:
    return abs(_nearest(one.span(name), DEFAULTS[name]) - DEFAULTS[name])


def _nearest(span: Span, value: int) -> int:
    return min(max(value, span.low), span.high)
