"""Records of ``__consumer_offsets``, of every type, by groups that may write whatever they want."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from caughtup.models.polls.batch import Record
from caughtup.models.wire.consumer_offsets import OffsetCommit, OffsetKey
from tests.fuzz.classic_groups import ClassicGroups
from tests.fuzz.consumer_groups import ConsumerGroups
from tests.fuzz.streams_groups import StreamsGroups
from tests.fuzz.values import Values
from tests.support import wire
from tests.support.damage import damaged

_KINDS = ("commit", "classic", "consumer", "streams", "unknown")
_WEIGHTS = (45, 25, 14, 14, 2)


class OffsetRecords:
    """Makes records; ``damage`` is how many of a hundred are damaged once they are whole."""

    def __init__(self, values: Values, damage: int = 15) -> None:
        self._values = values
        self._damage = damage / 100
        self._last: deque[Record] = deque(maxlen=100)
        classic = ClassicGroups(values, self._damage / 2)
        consumer = ConsumerGroups(values, lambda: classic.subscription(False))
        self._makes: dict[str, Callable[[], Record]] = {
            "commit": self._commit,
            "classic": classic.record,
            "consumer": consumer.record,
            "streams": StreamsGroups(values).record,
            "unknown": self._unknown,
        }

    def record(self) -> Record:
        """Make a record, or damage one of the last again."""
        values = self._values
        if len(self._last) == self._last.maxlen and values.chance(0.35):
            key, value = values.random.choice(self._last)
            if key is not None and value is not None:
                return key, damaged(values.random, value)
        record = self._record()
        self._last.append(record)
        return record

    def _record(self) -> Record:
        """Make one: of a commit, a group of any kind, or nothing that anybody knows."""
        values = self._values
        (kind,) = values.random.choices(_KINDS, _WEIGHTS)
        key, value = self._makes[kind]()
        if values.chance(0.1):
            value = None
        elif value is not None and values.chance(self._damage):
            value = damaged(values.random, value)
        if key is not None and values.chance(self._damage / 5):
            key = damaged(values.random, key)
        return key, value

    def _unknown(self) -> Record:
        random = self._values.random
        key = random.randint(-3, 40).to_bytes(2, signed=True) + random.randbytes(
            random.randint(0, 9)
        )
        return (None if self._values.chance(0.2) else key), random.randbytes(random.randint(0, 40))

    def _commit(self) -> Record:
        values, version = self._values, self._values.random.randint(0, 4)
        key = OffsetKey(values.group(), values.topic(), values.number())
        commit = OffsetCommit(
            values.offset(),
            values.epoch(),
            values.text(),
            values.time_ms(),
            values.int64() if version == 1 else -1,
            values.topic_id() if version == 4 and values.chance(0.8) else None,
        )
        return wire.offset_key(key, values.one_of(0, 1)), wire.offset_commit(commit, version)
