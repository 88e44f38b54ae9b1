"""What a hostile broker answers to whoever asks it for reassignments and what is around them."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping

from aiokafka.errors import KafkaConnectionError, KafkaError

from caughtup.agents.kafka.protocol.brokers import Purpose
from caughtup.agents.kafka.protocol.cluster_answers import FEATURE, ApiVersions, Broker
from caughtup.agents.kafka.protocol.requests import Call, Key
from tests.fuzz.values import Values
from tests.support.damage import damaged

_NO_TAGS = b"\0"
_RATES = ("1000", "-1", "", "1" * 5_000, "²", "9223372036854775807", "0", "x")
_REPLICAS = ("*", "0:1,1:2", "0:1,,:", ":" * 50, "-1:-1", "0:" + "9" * 5_000, "none", ",")
_RELEASES = (-1, 0, 7, 20, 30, 99, 32_767)
_ERRORS = (3, 5, 6, 9, 29, 41, -1, 999)


def _int16(number: int) -> bytes:
    return struct.pack(">h", number)


def _int32(number: int) -> bytes:
    return struct.pack(">i", number)


def _int64(number: int) -> bytes:
    return struct.pack(">q", number)


def _varint(number: int) -> bytes:
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*made, number))


def _string(text: str | None) -> bytes:
    raw = None if text is None else text.encode()
    return b"\0" if raw is None else _varint(len(raw) + 1) + raw


def _array(items: Iterable[bytes]) -> bytes:
    made = list(items)
    return _varint(len(made) + 1) + b"".join(made)


def _plain_string(text: str | None) -> bytes:
    raw = None if text is None else text.encode()
    return _int16(-1) if raw is None else _int16(len(raw)) + raw


def _plain_array(items: Iterable[bytes]) -> bytes:
    made = list(items)
    return _int32(len(made)) + b"".join(made)


class HostileBrokers:
    """Stands for the connections to brokers; each answer is drawn anew, and some are damaged.

    ``answered`` counts them.
    """

    timeout_seconds = 0.1

    def __init__(self, values: Values) -> None:
        self.brokers: dict[int, Broker] = {}
        self.answered = 0
        self._values = values
        self._makers = {
            Key.LIST_PARTITION_REASSIGNMENTS: self._reassignments,
            Key.DESCRIBE_CLUSTER: self._cluster,
            Key.DESCRIBE_QUORUM: self._quorum,
            Key.DESCRIBE_TOPIC_PARTITIONS: self._partitions,
            Key.LIST_OFFSETS: self._log_ends,
            Key.DESCRIBE_LOG_DIRS: self._log_dirs,
            Key.DESCRIBE_CONFIGS: self._configs,
            Key.LIST_CONFIG_RESOURCES: self._topic_names,
        }

    def learn(self, brokers: Iterable[Broker]) -> None:
        self.brokers = {broker.id: broker for broker in brokers}

    def close(self) -> None:
        pass

    async def any_offered(self) -> ApiVersions:
        return self._offered()

    def all_offered(self) -> list[ApiVersions]:
        return [self._offered() for _ in self._values.several()]

    async def bootstrap(self) -> HostileBrokers:
        raise KafkaConnectionError("refused")

    async def connection(self, broker: int) -> HostileBrokers:
        self._fail()
        return self

    @property
    def offered(self) -> ApiVersions:
        return self._offered()

    async def ask_any(self, call: object, *, purpose: Purpose = Purpose.OWN) -> tuple[Call, bytes]:
        made = call if isinstance(call, Call) else call(self._offered())  # type: ignore[operator]
        assert isinstance(made, Call)
        return made, await self.ask(0, made)

    async def ask(self, broker: int, call: Call, *, purpose: Purpose = Purpose.OWN) -> bytes:
        self._fail()
        self.answered += 1
        answer = self._makers[call.key]()
        return damaged(self._values.random, answer) if self._values.chance(0.1) else answer

    def _fail(self) -> None:
        if self._values.chance(0.02):
            raise KafkaConnectionError("reset by peer")
        if self._values.chance(0.01):
            raise KafkaError

    def _offered(self) -> ApiVersions:
        values = self._values
        requests: Mapping[int, tuple[int, int]] = dict.fromkeys(self._makers, (0, 9))
        if values.chance(0.3):  # brokers before 4.1
            requests = {
                key: these for key, these in requests.items() if key != Key.LIST_CONFIG_RESOURCES
            }
        level = {FEATURE: values.one_of(*_RELEASES)} if values.chance(0.9) else {}
        return ApiVersions(dict(requests), level, level)

    def _error(self) -> bytes:
        return _int16(self._values.one_of(*_ERRORS) if self._values.chance(0.05) else 0)

    def _broker(self) -> int:
        values = self._values
        return values.int32() if values.chance(values.extreme / 5) else values.random.randint(1, 4)

    def _brokers(self) -> bytes:
        return _array(_int32(self._broker()) for _ in self._values.several(4))

    def _topic(self) -> str:
        values = self._values
        return values.topic() if values.chance(0.3) else values.one_of("orders", "words")

    def _number(self) -> int:
        return max(-(1 << 31), min((1 << 31) - 1, self._values.number()))

    def _reassignments(self) -> bytes:
        def partition() -> bytes:
            brokers = self._brokers() + self._brokers() + self._brokers()
            return _int32(self._number()) + brokers + _NO_TAGS

        topics = (
            _string(self._topic()) + _array(partition() for _ in self._values.several()) + _NO_TAGS
            for _ in self._values.several()
        )
        return _int32(0) + self._error() + _string(None) + _array(topics) + _NO_TAGS

    def _cluster(self) -> bytes:
        values = self._values
        brokers = (
            _int32(self._broker())
            + _string(values.text())
            + _int32(values.one_of(9092, -1, 0, 70_000))
            + _string(None)
            + bytes((values.random.randint(0, 2),))
            + _NO_TAGS
            for _ in range(values.random.randint(1, 5))
        )
        head = _int32(0) + self._error() + _string(None) + b"\1" + _string("c")
        return head + _int32(self._broker()) + _array(brokers) + _int32(0) + _NO_TAGS

    def _quorum(self) -> bytes:
        values = self._values
        leader = _int32(self._broker()) + _int32(values.epoch())
        partition = _int32(0) + self._error() + leader + _int64(values.offset())
        return self._error() + _array([_string("m") + _array([partition]) + _NO_TAGS]) + _NO_TAGS

    def _partitions(self) -> bytes:
        def partition() -> bytes:
            led = _int32(self._broker()) + _int32(self._values.epoch())
            replicas = self._brokers() + self._brokers() + b"\0\0" + self._brokers()
            return self._error() + _int32(self._number()) + led + replicas + _NO_TAGS

        topics = (
            self._error()
            + _string(self._topic())
            + self._values.topic_id()
            + b"\0"
            + _array(partition() for _ in self._values.several(4))
            + _int32(0)
            + _NO_TAGS
            for _ in self._values.several()
        )
        cursor = b"\xff"
        if self._values.chance(0.2):
            cursor = b"\1" + _string(self._topic()) + _int32(self._number()) + _NO_TAGS
        return _int32(0) + _array(topics) + cursor + _NO_TAGS

    def _log_ends(self) -> bytes:
        values = self._values
        topics = (
            _plain_string(topic)
            + _plain_array(
                _int32(number) + self._error() + _int64(-1) + _int64(values.offset())
                for number in range(4)
            )
            for topic in ("orders", "words", values.topic())
        )
        return _plain_array(topics)

    def _log_dirs(self) -> bytes:
        values = self._values

        def directory() -> bytes:
            logs = (
                _int32(number) + _int64(values.offset()) + _int64(0) + values.one_of(b"\0", b"\1")
                for number in range(3)
            )
            entries = _array(log + _NO_TAGS for log in logs)
            topics = [_string(topic) + entries + _NO_TAGS for topic in ("orders", "words")]
            space = _int64(values.offset()) + _int64(values.offset())
            return self._error() + _string(values.text()) + _array(topics) + space + _NO_TAGS

        directories = _array(directory() for _ in values.several())
        return _int32(0) + self._error() + directories + _NO_TAGS

    def _configs(self) -> bytes:
        values = self._values
        names = ("replication.throttled.rate", "replication.throttled.replicas")

        def config() -> bytes:
            name = f"{values.one_of('leader', 'follower')}.{values.one_of(*names)}"
            value = values.one_of(*(_RATES if name.endswith("rate") else _REPLICAS))
            return _plain_string(name) + _plain_string(value) + b"\0\1\0" + _plain_array(())

        resources = (
            self._error()
            + _plain_string(None)
            + b"\2"
            + _plain_string(self._topic())
            + _plain_array(config() for _ in values.several(4))
            for _ in range(1 if values.chance(0.9) else values.random.randint(0, 3))
        )
        return _int32(0) + _plain_array(resources)

    def _topic_names(self) -> bytes:
        names = (_string(self._topic()) + b"\2" + _NO_TAGS for _ in self._values.several(5))
        return _int32(0) + self._error() + _array(names) + _NO_TAGS
