"""Real Kafka Streams applications of published releases, and what the service finds of them."""

from __future__ import annotations

import json
import re
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce, producing
from caughtup.demo.cluster.topics import create_topics
from caughtup.models.assignment.configs import NEWEST, Release
from caughtup.models.records.recommendations import RESULTS
from tests.support.kafka.topics import whole_topic
from tests.support.oracles import Oracle, compiled_java, running_oracle
from tests.support.releases import RELEASES as PUBLISHED
from tests.support.releases import release_classpath
from tests.support.service import Service, wait_for

#: Releases that run here: the one that all else is held against as well.
RELEASES = {**PUBLISHED, "4.3.1": NEWEST}
SOURCE = Path(__file__).parent / "java" / "ReleasedApplication.java"
PARTITIONS, RECORDS, KEYS = 4, 2_000, 200
_STRINGS = "org.apache.kafka.common.serialization.Serdes$StringSerde"
_INTERNAL = "org.apache.kafka.streams.processor.internals.assignment."
_PUBLIC = "org.apache.kafka.streams.processor.assignment.assignors.StickyTaskAssignor"
_ZONES = ("a", "b", "c")
_STRATEGY = "rack.aware.assignment.strategy"
#: Of brokers that have racks, as the instances of applications have that go by them.
RACKED_BROKERS = {"broker.rack": "rack{node}"}


@dataclass(frozen=True)
class Variation:
    """Configs of an application: by name, and of each instance where they have racks or tags."""

    name: str
    configs: Mapping[str, str] = field(default_factory=dict)
    since: Release = Release.V2_8
    tagged: bool = False
    racked: bool = False
    assignor: str = ""

    @property
    def truth(self) -> dict[str, str]:
        """Return the configs that decisions may tell; those that its assignor reads."""
        found = {"assignor": self.assignor or "high_availability"}
        found["num.standby.replicas"] = self.configs["num.standby.replicas"]
        if self.assignor:
            return found
        found |= {_STRATEGY: "none", "rack.aware.assignment.tags": "none"}
        found |= {"max.warmup.replicas": "2", **self.configs}
        return found | ({"rack.aware.assignment.tags": "zone"} if self.tagged else {})

    def properties(self, version: str, instance: int) -> dict[str, str]:
        """Return what an instance of a release is configured with."""
        found = dict(self.configs)
        if self.tagged:
            found |= {"client.tag.zone": _ZONES[instance], "rack.aware.assignment.tags": "zone"}
        if self.racked:
            found["client.rack"] = f"rack{1 + instance % 2}"
        if self.assignor == "sticky":
            legacy = "Legacy" if RELEASES[version] == NEWEST else ""
            found["internal.task.assignor.class"] = f"{_INTERNAL}{legacy}StickyTaskAssignor"
        elif self.assignor == "fallback_prior":
            found["internal.task.assignor.class"] = f"{_INTERNAL}FallbackPriorTaskAssignor"
        elif self.assignor:
            found["task.assignor.class"] = _PUBLIC
        return found


def _variations() -> Iterator[Variation]:
    numbers = "num.standby.replicas", "max.warmup.replicas", "acceptable.recovery.lag"
    for values in ((0, 2, 10), (1, 2, 10), (2, 2, 10), (1, 1, 10), (1, 4, 10), (1, 2, 10_000)):
        name = "standbys {}, warm-ups {}, lag {}".format(*values)
        yield Variation(name, dict(zip(numbers, map(str, values), strict=True)))
    one = {"num.standby.replicas": "1", "acceptable.recovery.lag": "10"}
    yield Variation("client tags", one, Release.V3_2, tagged=True)
    traffic, balanced = {_STRATEGY: "min_traffic"}, {_STRATEGY: "balance_subtopology"}
    yield Variation("racks, min_traffic", one | traffic, Release.V3_5_2, racked=True)
    yield Variation("internal sticky", one, assignor="sticky")
    yield Variation("public sticky", one, Release.V3_7, assignor="public_sticky")
    yield Variation("racks, balance_subtopology", one | balanced, Release.V3_7, racked=True)
    costs = {f"rack.aware.assignment.{name}_cost": "1" for name in ("traffic", "non_overlap")}
    yield Variation("racks, costs 1 and 1", one | traffic | costs, Release.V3_5_2, racked=True)
    everything = {"tagged": True, "racked": True}
    yield Variation("racks and client tags", one | traffic, Release.V3_5_2, **everything)
    yield Variation("fallback", one, assignor="fallback_prior")


VARIATIONS = tuple(_variations())
#: Those that are held under load: one standby each, since its lag is what is hard to know.
LOADED = tuple(
    Variation(
        f"lag {lag:,}",
        {
            "num.standby.replicas": "1",
            "max.warmup.replicas": "2",
            "acceptable.recovery.lag": str(lag),
        },
    )
    for lag in (10, 1_000, 10_000)
)


@dataclass
class Outcome:
    """What was found of an application's generations: each one's result, and why.

    ``known`` has each config's values in words, but for those that are assumed.
    """

    release: str
    variation: Variation
    found: dict[int, tuple[str, str]]
    known: Mapping[str, str] = field(default_factory=dict)

    def wrong(self) -> dict[str, str]:
        """Return the configs of which the values that are known don't have the true one."""
        truth = self.variation.truth
        return {
            name: text
            for name, text in self.known.items()
            if name in truth and not _has(text, truth[name])
        }

    def results(self, after: int = 0) -> Counter[str]:
        """Count the results but for the first generations."""
        return Counter(result for result, _ in [*self.found.values()][after:])


def play(
    cluster: EmbeddedCluster,
    service: Service,
    version: str,
    variations: Sequence[Variation],
    *,
    seconds: float,
    directory: Path,
    records_per_second: float = 0,
    changes: int = 3,
    say: Callable[[str], None] = print,
) -> list[Outcome]:
    """Run one application of each variation, all in one JVM: two instances, three, two again.

    ``records_per_second`` flow into each application all the time, keys in turn. With more than
    three ``changes`` instances go on leaving and coming back in turn, with what they have on disk.

    Each change is given so many seconds, in which rebalances follow each other and, if they are
    more than 60, probing rebalances come.
    """
    groups = {f"{version}-{uuid.uuid4().hex[:6]}": one for one in variations}
    with ExitStack() as running_all:
        ask = running_all.enter_context(instances(version))

        def start(number: int) -> None:
            for group, one in groups.items():
                name = f"{group}-{number}"
                config = _config(cluster, directory, group, name)
                config |= one.properties(version, number)
                asked = {"do": "start", "name": name, "source": f"{group}-in", "config": config}
                answer = ask.ask(asked)
                assert "exception" not in answer, answer

        def running() -> bool:
            return {*ask.ask({"do": "states"}).values()} <= {"RUNNING", "REBALANCING"}

        for group in groups:
            create_topics(cluster, {f"{group}-in": PARTITIONS}, replicas=1)
            produce(cluster, f"{group}-in", RECORDS, keys=KEYS)
            if records_per_second:
                flowing = producing(cluster, f"{group}-in", records_per_second, keys=KEYS)
                running_all.enter_context(flowing)
        start(0)
        time.sleep(seconds / 3)
        for number in (1, 2):
            start(number)
            say(f"{version}: {number + 1} instances")
            time.sleep(seconds)
        for change in range(2, changes):
            wait_for("all run", running)
            number = 1 + (change // 2 + 1) % 2
            if change % 2:
                start(number)
            else:
                for group in groups:
                    ask.ask({"do": "close", "name": f"{group}-{number}"})
            say(f"{version}: one {'more' if change % 2 else 'gone'}")
            time.sleep(seconds)
    return [
        Outcome(version, one, *_found(cluster, service, group)) for group, one in groups.items()
    ]


@contextmanager
def instances(version: str) -> Iterator[Oracle]:
    """Run a JVM with a release's jars, in which instances can be started."""
    kafka = release_classpath(version, runs=True)
    classes = compiled_java([SOURCE], kafka=kafka)
    with running_oracle("ReleasedApplication", classes, kafka=kafka) as ask:
        yield ask


def _config(cluster: EmbeddedCluster, directory: Path, group: str, name: str) -> dict[str, str]:
    return {
        "application.id": group,
        "bootstrap.servers": cluster.bootstrap_servers,
        "client.id": name,
        "state.dir": str(directory / name),
        "default.key.serde": _STRINGS,
        "default.value.serde": _STRINGS,
        "num.stream.threads": "1",
        "replication.factor": "1",
        "commit.interval.ms": "500",
        "cache.max.bytes.buffering": "0",
        "probing.rebalance.interval.ms": "60000",
        "session.timeout.ms": "10000",
        "heartbeat.interval.ms": "2000",
        "consumer.auto.offset.reset": "earliest",
    }


def _found(
    cluster: EmbeddedCluster, service: Service, group: str
) -> tuple[dict[int, tuple[str, str]], dict[str, str]]:
    """Return what the service published of a group's generations, the last word on each.

    And what it knows of its configs by the last one.
    """
    found: dict[int, tuple[str, str]] = {}
    known: dict[str, str] = {}
    for message in whole_topic(cluster, service.topic("recommended-assignments")):
        value = message.value()
        if value is None:
            continue
        record = json.loads(value)
        if record["group"] == group:
            leader = record["leader"]
            found[record["generation"]] = leader["result"], leader.get("why", "")
            known = {
                one["name"]: one["values"]
                for one in record["inputs"].get("configs", ())
                if one["provenance"] != "assumed"
            }
    return dict(sorted(found.items())), known


def _has(text: str, value: str) -> bool:
    """Return whether a value is among those that a config can have, in words."""
    for low, high, least, one in re.findall(r"(\d+) to (\d+)|(\d+) or more|([^\s]+)", text):
        if value == one or (low and int(low) <= int(value) <= int(high)):
            return True
        if least and int(value) >= int(least):
            return True
    return False


def rows(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Write a table as docs/measured.md has it, and why generations are undetermined."""
    yield f"| release | variation | generations | {' | '.join(RESULTS)} | after the fifth |"
    yield "|---|---|---|---|---|---|---|---|"
    for one in outcomes:
        all_, late = one.results(), one.results(after=5)
        counts = (str(all_[result]) for result in RESULTS)
        determined = f"{late['match']} match, {late['consistent']} consistent of {late.total()}"
        cells = (one.release, one.variation.name, str(all_.total()), *counts, determined)
        yield "| " + " | ".join(cells) + " |"
    for one in outcomes:
        known = ", ".join(f"{name} {text}" for name, text in one.known.items())
        yield f"{one.release}, {one.variation.name}: wrong {one.wrong()}; known: {known}"
        for number, (result, why) in one.found.items():
            if result != "match":
                yield f"{one.release}, {one.variation.name}, generation {number}: {result}: {why:.600}"
