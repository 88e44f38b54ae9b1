"""How metrics under others' names are declared: of a group's partitions, topics, or all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from caughtup.agents.watching_settings import Granularity
from caughtup.agents.web.metrics.families import Family, Scrape
from caughtup.agents.web.metrics.granularity import Fold
from caughtup.agents.web.metrics.group_labels import GroupLabels
from caughtup.agents.web.metrics.group_lines import NAMES, LabelNames, escaped
from caughtup.agents.web.metrics.groups import COUNT, Read, figures_by_partition
from caughtup.agents.web.metrics.partitions import Offsets, known_partitions, topic_sums

#: Makes the text before the label of the group.
Before = Callable[[Scrape], str]


def nothing(_: Scrape) -> str:
    """Return what stands before the first label where there is none more."""
    return ""


def cluster_called(label: str) -> Before:
    """Return what writes the cluster's name, its id where nobody gave it one, under a label."""

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
    before: Before = nothing,
    names: LabelNames = NAMES,
    form: bytes = COUNT,
) -> Family:
    """Declare a gauge of groups' partitions, of those groups that are told of by partition."""
    lines = partial(
        figures_by_partition,
        read,
        form=form,
        before=before,
        labels=lambda scrape: scrape.group_labels.beside(None, names),
    )
    return _of_the_living(Family(name, documentation, labels, lines))


def folded(
    name: str,
    documentation: str,
    labels: tuple[str, ...],
    read: Read,
    fold: Fold,
    granularity: Granularity,
    *,
    before: Before = nothing,
    names: LabelNames = NAMES,
    form: bytes = COUNT,
) -> Family:
    """Declare a gauge of groups' topics, or of groups: what those of their partitions come to."""

    def kept(scrape: Scrape) -> GroupLabels:
        return scrape.group_labels.beside(granularity, names)

    lines = partial(figures_by_partition, read, form=form, fold=fold, before=before, labels=kept)
    return _of_the_living(Family(name, documentation, labels, lines))


def of_groups(
    name: str,
    documentation: str,
    labels: tuple[str, ...],
    lines: Callable[[Family, Scrape, str], Iterator[bytes]],
) -> Family:
    """Declare a gauge of groups, each of which has lines of its own."""
    return _of_the_living(Family(name, documentation, labels, lines, lambda scrape: scrape.groups))


def of_logs(
    name: str,
    documentation: str,
    figure: Callable[[Offsets], int],
    *,
    before: Before = nothing,
    labels: tuple[str, ...] = (),
    names: tuple[str, str] = ("topic", "partition"),
) -> Family:
    """Declare a gauge of partitions' logs; there is none where groups are told of by topic.

    ``labels`` are those that ``before`` writes.
    """

    def lines(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
        if scrape.group_labels.detail.granularity != "partition":
            return
        topic_name, number_name = names
        start = before(scrape)
        for (topic, number), offsets in known_partitions(scrape):
            where = f'{start}{topic_name}="{escaped(topic)}",{number_name}="{number}"'
            yield family.line_of(where, figure(offsets))

    return _of_the_living(Family(name, documentation, (*labels, *names), lines))


def of_topics(
    name: str, documentation: str, label: str, figure: Callable[[Offsets, int], int]
) -> Family:
    """Declare a gauge of topics, made of the sums of their logs' offsets and of their number."""

    def lines(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
        for topic, offsets, count in topic_sums(scrape):
            if offsets is None:
                yield b""
            else:
                yield family.line_of(f'{label}="{escaped(topic)}"', figure(offsets, count))

    return _of_the_living(Family(name, documentation, (label,), lines))


def of_the_service(
    name: str,
    documentation: str,
    labels: tuple[str, ...],
    figure: Callable[[Scrape], tuple[tuple[str, ...], float] | None],
    *,
    is_counter: bool = False,
) -> Family:
    """Declare a metric with one series at most: its labels' values and its figure."""

    def lines(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
        if (found := figure(scrape)) is not None:
            yield family.line(*found)

    family = Family(name, documentation, labels, lines, type="counter" if is_counter else "gauge")
    return _of_the_living(family)


def _of_the_living(family: Family) -> Family:
    """Have a metric only while figures hold: see ``Health.is_alive``."""
    return family._replace(known=lambda scrape: scrape.health.is_alive)
