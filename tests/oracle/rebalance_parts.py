"""What generated rebalances are made of: a topology, members, and what they own and report.

A topology is built of each, so subtopologies are numbered from 0 without a gap, no topic is read by
two of them, and internal topics are called as Kafka Streams calls them, under the application id
``app``. A changelog has as many partitions as its subtopology has tasks.
"""

from __future__ import annotations

import random
import uuid
from typing import Any

from tests.oracle.generated.racks import LONG_MAX

Json = dict[str, Any]
RUNNING, UNKNOWN = -2, -3
NOW_MS = 1_700_000_000_000


def rebalance_of_random_parts(rng: random.Random, name: str, widest: int = 12) -> Json:
    """Make a rebalance without tags and racks, whose topics have ``widest`` partitions at most.

    Now and then there are many subtopologies, or one topic is much wider.
    """
    subtopologies, partitions = _topology(rng, widest)
    tasks = {
        f"{number}_{partition}": [
            [topic, partition] for topic in _sources(one) if partition < partitions[topic]
        ]
        for number, one in subtopologies.items()
        for partition in range(max(partitions[topic] for topic in _sources(one)))
    }
    stored = {topic for one in subtopologies.values() for topic in one["changelogs"]}
    ends = {
        f"{topic}-{partition}": _offset(rng)
        for topic in sorted(stored)
        for partition in range(partitions[topic])
    }
    committed = {
        f"{topic}-{partition}": _offset(rng)
        for one in subtopologies.values()
        for topic in one["source_changelogs"]
        for partition in range(partitions[topic])
        if rng.random() < 0.7
    }
    stateful = {
        f"{number}_{partition}"
        for number, one in subtopologies.items()
        if one["changelogs"] or one["source_changelogs"]
        for partition in range(max(partitions[topic] for topic in _sources(one)))
    }
    acceptable = rng.choice([0, 1, 100, 10_000, 10_000, LONG_MAX])
    members = _members(rng)
    _give_history(rng, members, tasks, stateful, acceptable)
    return {
        "name": name,
        "assignor": "high_availability",
        "config": {
            "acceptable.recovery.lag": acceptable,
            "max.warmup.replicas": rng.choice([1, 2, 2, 5]),
            "num.standby.replicas": rng.choice([0, 0, 1, 1, 2]),
            "probing.rebalance.interval.ms": rng.choice([60_000, 600_000]),
            "rack.aware.assignment.tags": [],
            "rack.aware.assignment.strategy": "none",
            "rack.aware.assignment.traffic_cost": None,
            "rack.aware.assignment.non_overlap_cost": None,
        },
        "now_ms": NOW_MS + rng.randint(0, 1_000_000),
        "leader": rng.choice(list(members.values()))["process"],
        "subtopologies": subtopologies,
        "partitions": partitions,
        "new_topics": [topic for topic in sorted(stored) if rng.random() < 0.08],
        "brokers": {},
        "replicas": {},
        "end_offsets": ends,
        "committed": committed,
        "members": members,
    }


def _sources(subtopology: Json) -> list[str]:
    return [*subtopology["sources"], *subtopology["repartition_sources"]]


def _topology(rng: random.Random, widest: int) -> tuple[dict[str, Json], dict[str, int]]:
    """Make subtopologies and the partitions of their topics; now and then many of either."""
    subtopologies: dict[str, Json] = {}
    partitions: dict[str, int] = {}
    many = rng.random() < 0.08
    count = rng.randint(11, 14) if many else rng.choice([1, 1, 2, 2, 3, 4])
    wide = None if many or rng.random() >= 0.04 else rng.randrange(count)
    for number in range(count):
        sources = [f"{rng.choice('abz')}-in-{number}-{n}" for n in range(rng.choice([1, 1, 1, 2]))]
        repartition = [f"app-{number}-repartition"] if rng.random() < 0.25 else []
        if repartition and rng.random() < 0.5:
            sources = []
        stores = range(rng.choice([0, 1, 1, 1, 2]))
        changelogs = [f"app-{rng.choice('abz')}-store-{number}-{n}-changelog" for n in stores]
        tables = [topic for topic in sources if rng.random() < 0.15]
        one = {
            "sources": sources,
            "repartition_sources": repartition,
            "changelogs": changelogs,
            "source_changelogs": tables,
        }
        most = 3 if many else rng.randint(129, 140) if wide == number else rng.randint(1, widest)
        for topic in _sources(one):
            partitions[topic] = most if rng.random() < 0.8 else rng.randint(1, most)
        for topic in changelogs:
            partitions[topic] = max(partitions[source] for source in _sources(one))
        for topic in tables:
            # Its changelog is read partition by partition, so each task has to have one.
            partitions[topic] = max(partitions[source] for source in _sources(one))
        subtopologies[str(number)] = one
    return subtopologies, partitions


def _members(rng: random.Random) -> dict[str, Json]:
    members: dict[str, Json] = {}
    threads = rng.choice([1, 2, 4, 8])
    oldest = rng.choice([11, 11, 11, 11, 7, 8, 9, 10])
    hosts = rng.random() < 0.3
    # Java's order of strings is that of UTF-16, where what needs two units comes before \uff5e.
    clients = ["\uff5e", "\U0001f600", "Ω"] if rng.random() < 0.15 else ["app"]
    for number in range(rng.choice([1, 2, 3, 3, 4, 6])):
        high = 1 << 127 | 1 << 63 if rng.random() < 0.3 else 0
        process = str(uuid.UUID(int=rng.getrandbits(128) | high))
        end_point = f"host-{number}:{8_000 + number}" if hosts and rng.random() < 0.8 else ""
        for thread in range(rng.randint(1, threads)):
            client = rng.choice(clients)
            consumer = uuid.UUID(int=rng.getrandbits(128))
            member = f"{client}-{number}-StreamThread-{thread + 1}-consumer-{consumer}"
            members[member] = {
                "process": process,
                "end_point": end_point,
                "tags": {},
                "rack": None,
                "version": rng.choice([11, oldest]),
                "owned": [],
                "offset_sums": {},
            }
    names = list(members)
    rng.shuffle(names)
    return {name: members[name] for name in names}


def _give_history(
    rng: random.Random,
    members: dict[str, Json],
    tasks: dict[str, list[list[Any]]],
    stateful: set[str],
    acceptable: int,
) -> None:
    """Draw who owns tasks and holds copies; often the rest of the members have just joined."""
    share = rng.choice([0.0, 0.3, 0.6, 1.0, 1.0])
    olds = rng.sample(list(members.values()), max(1, round(len(members) * share)))
    lost = rng.choice([0.0, 0.0, 0.1, 1.0])
    copies = rng.choice([0, 0, 1, 1, 2])
    reports_stateless = rng.random() < 0.5
    for task, read in tasks.items():
        owner = None
        if rng.random() >= lost:
            owner = rng.choice(olds)
            owner["owned"] += read
            if (task in stateful or reports_stateless) and rng.random() < 0.95:
                owner["offset_sums"][task] = RUNNING
        if task not in stateful:
            continue
        for member in rng.sample(list(members.values()), min(copies, len(members))):
            if member is not owner:
                member["offset_sums"][task] = _sum(rng, acceptable)
    members_left = list(members.values())
    if rng.random() < 0.12 and any(one["owned"] for one in members_left):
        # Two own a partition: one of them has missed a generation.
        taken = rng.choice([one for one in members_left if one["owned"]])["owned"]
        doubled = rng.choice(members_left)
        some = rng.sample(taken, rng.randint(1, len(taken)))
        doubled["owned"] += [one for one in some if one not in doubled["owned"]]
    if rng.random() < 0.12:
        _make_stale(rng, rng.choice(members_left))


def _make_stale(rng: random.Random, member: Json) -> None:
    """Add to a member what the topology no longer has, owned and reported."""
    member["owned"] += [["gone", 0], ["gone", 7]][: rng.randint(0, 2)]
    member["offset_sums"][f"{rng.choice([0, 77])}_{rng.choice([400, 401])}"] = rng.choice(
        [RUNNING, UNKNOWN, 0, 55]
    )


def _offset(rng: random.Random) -> int:
    edges = [0, 0, 100, 10_000, 1_000_000, rng.randint(0, 20_000), rng.randint(0, 20_000)]
    return rng.choice([*edges, *edges, LONG_MAX - 5])


def _sum(rng: random.Random, acceptable: int) -> int:
    near = min(rng.randint(0, 20_000), LONG_MAX) + rng.choice([0, acceptable % 100_000])
    return rng.choice([UNKNOWN, 0, 100, near, near, near, 10_000, 1_000_000, LONG_MAX])
