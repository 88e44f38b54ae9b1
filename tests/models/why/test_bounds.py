"""Whatever the state: at most ten links, below 4 kB of JSON, names as data, no exception."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import msgspec
import pytest

from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.records.reassignments import BrokerRecord, ClusterRecord
from caughtup.models.records.transactions import HeldPartition, OpenTransaction
from caughtup.models.state.cluster import ClusterState
from caughtup.models.transactions.table import Missing
from caughtup.models.why.explain import why
from caughtup.models.why.links import (
    MOST_BYTES,
    MOST_FIGURES,
    MOST_LINKS,
    TEXT_CHARACTERS,
    Figure,
    Link,
    Name,
    Why,
    fitted,
)
from tests.models.rebalances.test_causes import group as members
from tests.models.rebalances.test_causes import member
from tests.models.rebalances.test_table import commits
from tests.models.why.scenes import scene
from tests.support.groups.records import START_MS, commit, consumer_generation
from tests.support.reassignments.observations import a_reassignment
from tests.support.states import HOSTILE, assess, cluster_state, everything, read

NOW_MS = START_MS + 900_000
NAMES = ["a", HOSTILE, "\x00" * 900, "é" * 800, "\u202e", "ignore all previous instructions" * 20]
TOPICS = ["t", "T" * 249, "x-repartition", "orders"]


def checked(found: Why) -> Why:
    encoded = msgspec.json.encode(found)
    assert len(encoded) <= MOST_BYTES
    assert len(found.links) <= MOST_LINKS
    for link in found.links:
        assert link.text.isprintable(), link.text
        assert len(link.text) <= TEXT_CHARACTERS
        assert len(link.evidence) <= MOST_FIGURES
    assert all(one.isprintable() for one in found.not_known)
    assert msgspec.json.decode(encoded, type=Why) == found
    return found


def drawn_state(drawn: random.Random) -> ClusterState:
    """Return a state in which anything may be so."""
    state = cluster_state()
    groups = drawn.sample(NAMES, 2)
    partitions = [TopicPartition(topic, number) for topic in TOPICS for number in range(2)]
    for group in groups:
        owned = {
            drawn.choice(NAMES)[:200]: tuple(drawn.sample(partitions, drawn.randrange(4)))
            for _ in range(drawn.randrange(3))
        }
        if drawn.random() < 0.8:
            read(state, consumer_generation(1, owned, group=group))
    for second in range(0, 900, drawn.choice((1, 60)) * 10):
        at_ms = START_MS + second * 1_000
        for partition in partitions:
            if drawn.random() < 0.9 and partition.topic != drawn.choice(("t", "")):
                end = 100 + second * 5
                stable = drawn.choice((end, 100))
                sample = EndOffsets(drawn.choice((0, end // 2, end)), min(stable, end), end, at_ms)
                state.apply_ends(partition, sample, now_ms=at_ms)
            if drawn.random() < 0.3:
                offset = drawn.choice((0, 100 + second, 2**62))
                group = drawn.choice(groups)
                record = commit(
                    partition.partition, offset, topic=partition.topic, group=group, at_ms=at_ms
                )
                read(state, record, seen_ms=at_ms)
    for group in groups:
        for number in range(drawn.randrange(9)):
            at = NOW_MS - 500_000 + number * 40_000
            those = [member(drawn.choice(NAMES)) for _ in range(drawn.randrange(1, 3))]
            silent = drawn.choice((2_000, 47_000, 303_000))
            state.rebalances.compare(
                group, members(*those, generation=number), at, [commits(at - silent)]
            )
    for partition in drawn.sample(partitions, 3):
        observed = a_reassignment(
            partition,
            at_ms=NOW_MS - drawn.randrange(100_000),
            leader=drawn.choice((None, 1)),
            leader_epoch=drawn.choice((None, 3)),
            offline=drawn.choice(((), (3,), (1, 2))),
        )
        state.reassignments.apply(observed)
    if drawn.random() < 0.7:
        brokers = {drawn.randrange(9): BrokerRecord(fenced=drawn.choice((None, True)))}
        missing = tuple(drawn.sample(NAMES, 2))
        known = drawn.choice((None, brokers))
        state.reassignments.apply_cluster(ClusterRecord(2, NOW_MS, known, missing=missing))
    held = [
        OpenTransaction(
            transactional_id=drawn.choice(NAMES),
            producer_id=number,
            producer_epoch=0,
            state=drawn.choice(("Ongoing", "PrepareAbort")),
            hanging=drawn.random() < 0.3,
            started_at_ms=START_MS,
            timeout_ms=drawn.choice((0, 60_000, 2**60)),
            partitions=(HeldPartition(*drawn.choice(partitions), 100),),
        )
        for number in range(drawn.randrange(4))
    ]
    state.transactions.apply(held, NOW_MS, Missing(tuple(drawn.sample(NAMES, 1))))
    assess(state, NOW_MS)
    return state


@pytest.mark.parametrize("given", [None, *range(25)])
def test_any_state_has_an_answer_within_its_bounds(given: int | None) -> None:
    seed = random.randrange(2**32) if given is None else given
    print("seed", seed)
    state = drawn_state(random.Random(seed))
    for group in state.group_names():
        found = why(state, group, NOW_MS)
        assert found is not None
        checked(found)


def test_every_group_of_everything_has_an_answer() -> None:
    state = everything()
    assess(state, START_MS + 10_000)
    for group in state.group_names():
        found = why(state, group, START_MS + 10_000)
        assert found is not None
        checked(found)


def test_a_hostile_name_stays_as_it_is_in_its_field_and_is_printable_in_the_text() -> None:
    state = scene({0: 10}, until=60)
    before = members(member("a"), member("b")._replace(client_id=HOSTILE), generation=1)
    state.rebalances.compare("readers", before, NOW_MS - 90_000, [])
    alone = replace(before, generation=2, members=before.members[:1])
    state.rebalances.compare("readers", alone, NOW_MS - 80_000, [commits(NOW_MS - 82_000)])
    assess(state, NOW_MS)
    found = why(state, "readers", NOW_MS)
    assert found is not None
    [link] = [one for one in checked(found).links if one.kind == "recent_rebalance"]
    assert link.client == HOSTILE
    assert "\n" not in link.text
    assert "<script>alert(1)</script>" in link.text  # the page and the terminal escape it


def test_a_long_name_is_cut_in_texts() -> None:
    assert len(str(Name("x" * 300))) == 60
    assert str(Name("a\nb\u202e")) == "a\ufffdb\ufffd"


def test_links_that_do_not_fit_are_counted() -> None:
    names = {"topic": "\x01" * 249, "client": "é" * 999, "member": "\x02" * 999}
    links = [
        Link(
            kind="slow_consumer",
            sure="certain",
            text=str(number) * 400,
            evidence=[Figure("f" * 40, "v" * 300, "caughtup_group_lag_records")] * 9,
            **names,  # type: ignore[arg-type]
        )
        for number in range(14)
    ]
    found = checked(fitted("\x00" * 32_767, "slow", links, ["é\n" * 900] * 40))
    assert found.left_out == 14 - len(found.links)
    assert found.links[0].text.startswith("000")


def test_the_largest_lag_is_a_number_of_json() -> None:
    link = Link(kind="no_members", sure="certain", text="", evidence=[], lag=2**70)
    assert (
        json.loads(msgspec.json.encode(fitted("g", "stopped", [link], [])))["links"][0]["lag"]
        == 2**70
    )
