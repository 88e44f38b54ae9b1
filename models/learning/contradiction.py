"""The configs that seem to differ from what the settings say or what was learned, in words."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from caughtup.models.assignment.configs import Release
from caughtup.models.learning.ranges import (
    ANY,
    INT_MAX,
    LAG,
    RELEASE,
    SPANS,
    STANDBYS,
    WARM_UPS,
    Algorithm,
    ConfigRange,
    Hypotheses,
    IntSpan,
    spans_of,
)
from caughtup.models.offsets import LONG_MAX
from caughtup.models.parameters import STRATEGY, TAGS

#: The key of the assignor among the configs' names.
ASSIGNOR = "assignor"
NAMES = (*ANY, TAGS, ASSIGNOR, STRATEGY)
#: All that hypotheses can differ by.
ALL_NAMES = (*NAMES, RELEASE)
#: The event that would determine an open config.
WOULD_TELL: Mapping[str, str] = {
    STANDBYS: "a generation with more instances",
    WARM_UPS: "a generation that warms up more copies at once, or in which a movement waits for a warm-up to end",
    LAG: "a copy whose lag is between these values when a leader decides",
    TAGS: "a generation with standbys and other instances",
    ASSIGNOR: "an instance that joins or leaves",
    STRATEGY: "an instance that joins or leaves, in another rack",
    RELEASE: "a task with state that moves to another instance",
}


def doubtful_configs(
    before: Hypotheses, now: Hypotheses, among: Collection[str] = ALL_NAMES
) -> tuple[str, ...]:
    """Return the configs that seem to have other values now than before.

    These are the configs of which a change of one alone would explain it; if there are none, those
    without a common value; or else all of them. ``among`` are the candidates.
    """
    alone = tuple(name for name in among if _agree_but_for(name, before, now))
    if alone:
        return alone
    apart = tuple(name for name in among if _is_apart(name, before, now))
    return apart or tuple(among)


def changes_in_words(names: Sequence[str], before: Hypotheses, now: Hypotheses) -> str:
    """Return a sentence about the values of configs before and now."""
    lines = [
        f"{name} was {values_in_words(name, before)}, now {values_in_words(name, now)}"
        for name in names
    ]
    return " or ".join(lines)


def _is_apart(name: str, before: Hypotheses, now: Hypotheses) -> bool:
    """Return whether a config has no value that is possible both before and now."""
    if name in SPANS:
        spans = spans_of(before, name)
        return not any(one.meet(other) for one in spans_of(now, name) for other in spans)
    return _unordered(name, before).isdisjoint(_unordered(name, now))


def _unordered(name: str, hypotheses: Hypotheses) -> set[str]:
    """Return the values of a config that isn't a number."""
    if name == ASSIGNOR:
        return {one.algorithm.assignor for one in hypotheses}
    if name == STRATEGY:
        return {_strategy(one.algorithm) for one in hypotheses}
    return {",".join(one.algorithm.tags) or "none" for one in hypotheses}


def is_open(name: str, hypotheses: Hypotheses) -> bool:
    """Return whether a config has several possible values."""
    if name in SPANS:
        return any(one.low != one.high for one in spans_of(hypotheses, name))
    return len(_unordered(name, hypotheses)) > 1


def values_in_words(name: str, hypotheses: Hypotheses) -> str:
    """Return the possible values of a config in words."""
    if name == RELEASE:
        spans = spans_of(hypotheses, name)
        return " or ".join(
            Release(n).text for span in spans for n in range(span.low, span.high + 1)
        )
    if name not in ANY:
        return " or ".join(sorted(_unordered(name, hypotheses)))
    return " or ".join(_span(span) for span in spans_of(hypotheses, name))


def _span(span: IntSpan) -> str:
    if span.low == span.high:
        return str(span.low)
    if span.high in (INT_MAX, LONG_MAX):
        return f"{span.low} or more"
    return f"{span.low} to {span.high}"


def _agree_but_for(name: str, before: Hypotheses, now: Hypotheses) -> bool:
    others = [_without(name, one) for one in before]
    return any(_without(name, one).meet(other) for one in now for other in others)


def _without(name: str, one: ConfigRange) -> ConfigRange:
    """Return a range in which a config may have any value."""
    if name in SPANS:
        return one.with_span(name, SPANS[name])
    algorithm = one.algorithm
    if name == TAGS:
        return replace(one, algorithm=algorithm._replace(tags=()))
    if name == STRATEGY:
        return replace(one, algorithm=algorithm._replace(strategy="none", costs=None))
    return replace(one, algorithm=algorithm._replace(assignor=""))


def _strategy(algorithm: Algorithm) -> str:
    if algorithm.costs is None:
        return algorithm.strategy
    traffic, non_overlap = algorithm.costs
    return f"{algorithm.strategy} at costs of {traffic} and {non_overlap}"
