"""What two checkouts show of one cluster: ``python -m tests.integration.service.compare_checkouts CHECKOUT``.

A Kafka Streams application gets an instance, loses one and is written to, plain groups lag, a
partition moves under a throttle, while the services of both checkouts run with topics of their own.
Then everything that they show is compared: metrics, the API, records of own topics and lines of
commands. Printed is what one of them lacks, and what differs, times and what depends on them aside.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

from caughtup.demo.cluster.topics import create_topics
from caughtup.demo.processes.children import free_ports
from caughtup.demo.story.stage import APPLICATION, DemoStage

ROOT = Path(__file__).parents[3]
_PATHS = (
    "metrics",
    "api/state",
    "api/lag",
    "api/reassignments",
    "api/configs",
    "api/connect",
    "api/transactions",
    "api/recent",
    f"api/view?group={APPLICATION}",
    "api/view?group=idle",
    f"api/groups/{APPLICATION}/recent",
    f"api/groups/{APPLICATION}/safe",
    f"api/groups/{APPLICATION}/cost?add=1",
    "ready",
    "healthz",
)
_COMMANDS = (
    ("lag", "--format", "json"),
    ("lag", "idle", "--format", "json"),
    ("configs", "--format", "json"),
    ("explain", APPLICATION, "--format", "json"),
    ("reassignments", "--format", "json"),
    ("connect", "--format", "json"),
    ("transactions", "--format", "json"),
    ("simulate", APPLICATION, "--add", "1", "--format", "json"),
)
#: Fields and metrics of times, rates and amounts of work: only that they are there is compared.
_VARIES = re.compile(
    r"(_ms|seconds|_at|age|rate|velocity|eta|time|cpu|memory|bytes|total|version|address|_count|_sum"
    r"|bucket|python|process|since|offset_seconds|lag_records|turn|why|reason|text|happenings)"
)
_SETTLE_SECONDS = 30.0
_READ_SECONDS = 10.0


def facts(found: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Yield the leaves of JSON by their paths; elements of lists have no numbers."""
    if isinstance(found, Mapping):
        for name, value in sorted(found.items()):
            yield from facts(value, f"{path}.{name}")
    elif isinstance(found, list):
        for value in found:
            yield from facts(value, f"{path}[]")
    else:
        yield path, type(found).__name__ if _VARIES.search(path) else found


def said(text: str) -> set[tuple[str, object]]:
    """Return the facts of an answer: JSON, lines of JSON, or metrics."""
    try:
        return set(facts(json.loads(text)))
    except json.JSONDecodeError:
        pass
    found: set[tuple[str, object]] = set()
    for line in text.splitlines():
        try:
            found |= set(facts(json.loads(line)))
        except json.JSONDecodeError:
            name, _, value = line.rpartition(" ")
            stays = line.startswith("#") or not _VARIES.search(name.split("{")[0])
            found.add((line, None) if line.startswith("#") else (name, value if stays else None))
    return found


class Shown:
    """What one checkout shows."""

    def __init__(self, checkout: Path, name: str) -> None:
        self.checkout, self.name, (self.port,) = checkout, name, free_ports(1)
        self.answers: dict[str, str] = {}

    def start(self, stage: DemoStage) -> subprocess.Popen[bytes]:
        settings = stage.processes.directory / f"{self.name}.toml"
        settings.write_text(
            f'bootstrap_servers = "{stage.cluster.bootstrap_servers}"\nweb_port = {self.port}\n'
            f'application_id = "{self.name}"\ntopic_prefix = "{self.name}-"\nlag_interval = 2\n'
        )
        # Python finds the checkout that it starts in before any of PYTHONPATH.
        command = self._command("run", "--config", str(settings))
        return subprocess.Popen(command, cwd=self.checkout, env=self._env())

    def ask(self, stage: DemoStage) -> None:
        """Ask the service and commands."""
        for path in _PATHS:
            self.answers[path] = self._get(path)
        for command in _COMMANDS:
            options = ("--bootstrap-servers", stage.cluster.bootstrap_servers)
            done = subprocess.run(
                self._command(*command, *options),
                check=False,
                cwd=self.checkout,
                env=self._env(),
                capture_output=True,
                text=True,
            )
            self.answers[" ".join(command)] = f"exit {done.returncode}\n{done.stdout}"

    def read(self, stage: DemoStage) -> None:
        """Read the service's own topics."""
        for topic, text in _records(stage, self.name).items():
            self.answers[f"topic {topic}"] = text

    def _get(self, path: str) -> str:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{path}", timeout=60) as got:
                return str(got.read(), "utf-8")
        except urllib.error.HTTPError as refused:
            return f"{refused.code} {refused.read().decode()}"

    def _command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "caughtup.agents", *arguments]

    def _env(self) -> dict[str, str]:
        return {"PYTHONPATH": str(self.checkout), "PATH": "/usr/bin:/bin", "HOME": str(Path.home())}


def _records(stage: DemoStage, prefix: str) -> dict[str, str]:
    """Return the last value of each key of each own topic, as lines."""
    consumer = Consumer(
        {
            "bootstrap.servers": stage.cluster.bootstrap_servers,
            "group.id": "reads",
            "enable.auto.commit": False,
        }
    )
    found: dict[str, dict[bytes, bytes]] = {}
    topics = consumer.list_topics(timeout=10).topics
    own = {name: topic for name, topic in topics.items() if name.startswith(f"{prefix}-")}
    consumer.assign(
        [
            TopicPartition(name, number, 0)
            for name, topic in own.items()
            for number in topic.partitions
        ]
    )
    until = time.monotonic() + _READ_SECONDS  # the services go on writing
    while time.monotonic() < until:
        for record in consumer.consume(1000, timeout=1):
            kept = found.setdefault(record.topic()[len(prefix) + 1 :], {})
            kept[record.key() or b""] = record.value() or b"null"
    consumer.close()
    return {
        topic: "\n".join(str(value, "utf-8", "replace") for _, value in sorted(kept.items()))
        for topic, kept in sorted(found.items())
    }


def _write(stage: DemoStage, records: int) -> None:
    producer = Producer({"bootstrap.servers": stage.cluster.bootstrap_servers})
    for number in range(records):
        producer.produce(stage.application.source, str(number), f"{number % 50}")
        producer.produce("plain", str(number), str(number % 20))
        producer.poll(0)
    producer.flush()


def _commit(stage: DemoStage) -> None:
    consumer = Consumer({"bootstrap.servers": stage.cluster.bootstrap_servers, "group.id": "idle"})
    consumer.commit(offsets=[TopicPartition("plain", n, 3) for n in range(2)], asynchronous=False)
    consumer.close()


def compare(before: Shown, after: Shown) -> int:
    """Print each difference; return how many there are."""
    differences = 0
    names = {before.name: "PREFIX", after.name: "PREFIX", str(before.port): "PORT"}
    names[str(after.port)] = "PORT"
    for name, text in before.answers.items():
        texts = [text, after.answers.get(name, "")]
        for old, new in names.items():
            texts = [one.replace(old, new) for one in texts]
        first, second = map(said, texts)
        for sign, only in (("-", first - second), ("+", second - first)):
            for path, value in sorted(only, key=repr):
                print(f"{name}: {sign} {path} {'' if value is None else value!r}"[:300])
                differences += 1
    return differences


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    given = parser.parse_args()
    shown = (Shown(given.checkout.resolve(), "before"), Shown(ROOT, "after0"))
    with DemoStage() as stage:
        stage.start_cluster()
        create_topics(stage.cluster, {"plain": 2})
        _write(stage, 2_000)
        _commit(stage)
        for instance in ("a", "b"):
            stage.application.start_instance(instance)
        running = [each.start(stage) for each in shown]
        try:
            time.sleep(_SETTLE_SECONDS)
            stage.application.start_instance("c")
            _write(stage, 2_000)
            time.sleep(_SETTLE_SECONDS)
            stage.application.stop_instance("a")
            time.sleep(_SETTLE_SECONDS)
            for each in shown:
                each.ask(stage)
        finally:
            for process in running:
                process.terminate()
            for process in running:
                process.wait(30)
        for each in shown:
            each.read(stage)
    compared = compare(*shown)
    print(f"{compared} differences in {len(shown[0].answers)} answers")


if __name__ == "__main__":
    main()
