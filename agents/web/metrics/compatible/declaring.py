"""Declarations of metrics under other exporters' names: of partitions, topics, groups or logs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from caughtup.agents.watching_settings import Granularity
from caughtup.agents.web.metrics.families import Family, Scrape
from caughtup.agents.web.metrics.group_labels import GroupLabels
from caughtup.agents.web.metrics.group_lines import NAMES, Fold, LabelNames, escaped
from caughtup.agents.web.metrics.groups import COUNT, Read, figures_by_partition
from caughtup.agents.web.metrics.partitions import Offsets, known_partitions, topic_sums

#: Returns the labels before the group's.
Before = Callable[[Scrape], str]


def no_labels(_: Scrape) -> str:
    """Return no labels."""
    return ""


def cluster_label(label: str) -> Before:
    """Return a function that labels a series with the cluster's name, or its id without one."""

    def before(scrape: Scrape) -> str:
        name = scrape.health.cluster_name or scrape.state.cluster
        return f'{label}="{escaped(name)}",'

    return before


def of_partitions(
    name: str,
    documentation: str,
    labels: tuple[str, ...],
    read: Read,
    *,
    before: Before = no_labels,
    names: LabelNames = NAMES,
    form: bytes = COUNT,
) -> Family:
    """Declare a gauge of partitions, for groups with the granularity partition."""
    lines = partial(
        figures_by_partition,
        read,
        form=form,
        before=before,
        labels=lambda scrape: scrape.group_labels.variant(None, names),
    )
    return _while_alive(Family(name, documentation, labels, lines))


def folded(
    name: str,
    documentation: str,
    labels: tuple[str, ...],
    read: Read,
    fold: Fold,
    granularity: Granularity,
    *,
    before: Before = no_labels,
    names: LabelNames = NAMES,
    form: bytes = COUNT,
) -> Family:
    """Declare a gauge of a group's topics, or of groups, folded from its partitions."""

    def kept(scrape: Scrape) -> GroupLabels:
        return scrape.group_labels.variant(granularity, names)

    lines = partial(figures_by_partition, read, form=form, fold=fold, before=before, labels=kept)
    return _while_alive(Family(name, documentation, labels, lines))


def of_groups(
    name: str,
    documentation: str,
    labels: tuple[str, ...],
    lines: Callable[[Family, Scrape, str], Iterator[bytes]],
) -> Family:
    """Declare a gauge of groups."""
    return _while_alive(Family(name, documentation, labels, lines, lambda scrape: scrape.groups))


def of_logs(
    name: str,
    documentation: str,
    figure: Callable[[Offsets], int],
    *,
    before: Before = no_labels,
    labels: tuple[str, ...] = (),
    names: tuple[str, str] = ("topic", "partition"),
) -> Family:
    """Declare a gauge of partitions' logs, absent with a coarser granularity.

    ``labels`` are the names of those that ``before`` returns.
    """

    def lines(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
        if scrape.group_labels.detail.granularity != "partition":
            return
        topic_name, number_name = names
        start = before(scrape)
        for (topic, number), offsets in known_partitions(scrape):
            where = f'{start}{topic_name}="{escaped(topic)}",{number_name}="{number}"'
            yield family.line_of(where, figure(offsets))

    return _while_alive(Family(name, documentation, (*labels, *names), lines))


def of_topics(
    name: str, documentation: str, label: str, figure: Callable[[Offsets, int], int]
) -> Family:
    """Declare a gauge of topics, from their sums of offsets and numbers of partitions."""

    def lines(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
        for topic, offsets, count in topic_sums(scrape):
            if offsets is None:
                yield b""
            else:
                yield family.line_of(f'{label}="{escaped(topic)}"', figure(offsets, count))

    return _while_alive(Family(name, documentation, (label,), lines))


def single_series(
    name: str,
    documentation: str,
    labels: tuple[str, ...],
    figure: Callable[[Scrape], tuple[tuple[str, ...], float] | None],
    *,
    is_counter: bool = False,
) -> Family:
    """Declare a metric with at most one series: ``figure`` returns label values and figure."""

    def lines(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
        if (found := figure(scrape)) is not None:
            yield family.line(*found)

    family = Family(name, documentation, labels, lines, type="counter" if is_counter else "gauge")
    return _while_alive(family)


def _while_alive(family: Family) -> Family:
    """Return a family that is absent while figures aren't valid: see ``Health.is_alive``."""
    return family._replace(known=lambda scrape: scrape.health.is_alive)
