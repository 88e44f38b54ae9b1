"""A member of a consumer group in a process of its own, which does what the test says.

It polls until standard input ends, and takes commands there: ``stall`` (poll no more), ``go on``,
``slow SECONDS`` (wait so long before each record), ``subscribe TOPICS`` and ``leave``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import Self

from caughtup.demo.cluster.cluster import EmbeddedCluster

_PROGRAM = """
import json, queue, sys, threading
from confluent_kafka import Consumer
given = json.loads(sys.argv[1])
consumer, stalled, ended = Consumer(given["config"]), threading.Event(), threading.Event()
subscriptions = queue.SimpleQueue()  # a consumer is used by one thread
pause = 0.0
consumer.subscribe(given["topics"])
print("here", flush=True)
def obey():
    global pause
    for line in sys.stdin:
        command, _, rest = line.strip().partition(" ")
        if command == "stall":
            stalled.set()
        elif command == "go":
            stalled.clear()
        elif command == "subscribe":
            subscriptions.put(rest.split(","))
        elif command == "slow":
            pause = float(rest)
        elif command == "leave":
            ended.set()
    ended.set()
threading.Thread(target=obey, daemon=True).start()
while not ended.is_set():
    if not subscriptions.empty():
        consumer.subscribe(subscriptions.get())
    if stalled.is_set():
        ended.wait(0.05)
    else:
        ended.wait(pause)
        consumer.poll(0.05)
consumer.close()
"""


class MemberProcess:
    """A member in librdkafka; ``config`` is the consumer's."""

    def __init__(
        self, cluster: EmbeddedCluster, group: str, topics: list[str], **config: object
    ) -> None:
        given = {
            **cluster.client_config(),
            "group.id": group,
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 500,
            **{name.replace("_", "."): value for name, value in config.items()},
        }
        given = {name: value for name, value in given.items() if value is not None}
        self._group = group
        self.client_id = str(given.get("client.id", ""))
        self._said = TemporaryFile("w+")  # noqa: SIM115 - __exit__ closes it
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, json.dumps({"config": given, "topics": topics})],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "here\n"

    def tell(self, command: str) -> None:
        """Pass a command on."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()

    def leave(self) -> None:
        """Close the consumer, and wait until the process has ended."""
        self.tell("leave")
        self._process.wait(60)

    def kill(self) -> None:
        """End it without a word to the coordinator."""
        self._process.kill()
        self._process.wait(60)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self.kill()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        with self._said as said:
            said.seek(0)
            if text := said.read():  # shown with a test that fails
                print(f"a member of {self._group} said: {text[-2_000:]}")


@contextmanager
def records_flow(cluster: EmbeddedCluster, topics: list[str]) -> Iterator[None]:
    """Produce records all the time, so that members commit; idle ones of librdkafka don't."""
    program = (
        "import json, sys, time\n"
        "from confluent_kafka import KafkaError, KafkaException, Producer\n"
        "given = json.loads(sys.argv[1])\n"
        "producer = Producer(given['config'])\n"
        "number = 0\n"
        "while True:\n"
        "    for topic, count in given['topics']:\n"
        "        try:\n"
        "            for partition in range(count):\n"
        "                producer.produce(topic, str(number), partition=partition)\n"
        "        except KafkaException as error:\n"  # a test may delete a topic
        "            if error.args[0].code() != KafkaError._UNKNOWN_TOPIC:\n"
        "                raise\n"
        "    number += 1\n"
        "    producer.poll(0.1)\n"
        "    time.sleep(0.1)\n"
    )
    config = cluster.client_config()
    given = json.dumps({"config": config, "topics": [(topic, 4) for topic in topics]})
    with TemporaryFile("w+") as said:
        process = subprocess.Popen([sys.executable, "-c", program, given], stderr=said)
        try:
            yield
        finally:
            ended = process.poll()
            process.kill()
            process.wait(60)
            said.seek(0)
            assert ended is None, f"no more records flow, {ended}: {said.read()[-2_000:]}"
