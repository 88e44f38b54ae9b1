"""Asking about many groups, some of them odd: what is asked, remembered and told stays bounded."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError, KafkaError, RequestTimedOutError

from caughtup.agents.kafka.asking.asker import MOST_GROUPS, GroupAsker
from caughtup.agents.kafka.protocol.cluster_answers import ApiVersions, Broker
from caughtup.agents.kafka.protocol.decoding import choose_version
from caughtup.agents.kafka.protocol.requests import Call, Key, flexible_array, flexible_string
from caughtup.models.polls.asked import AskedGroups
from caughtup.models.state.cluster import ClusterState
from caughtup.models.watching import Watching
from caughtup.models.wire.reader import Reader

_INT16, _INT32, _INT64 = struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">q")
_OK, _AUTHORIZATION_FAILED = 0, 30
_THROTTLE, _TAGS = bytes(4), b"\0"


class Brokers:
    """Stands for a cluster of one broker that coordinates some groups without members."""

    def __init__(self, groups: Iterable[str] = ()) -> None:
        self.groups = list(groups)
        #: The groups that exist, and are not listed.
        self.unlisted: set[str] = set()
        self.refused: set[str] = set()
        self.fails: Callable[[Call], KafkaError | None] = lambda _: None
        self.requests = Counter[Key]()
        self.fenced = False
        self.connections = self

    async def brokers(self) -> tuple[Broker, ...]:
        return (Broker(1, "h", 9092, self.fenced),)

    async def offered(self, broker: int) -> ApiVersions:
        assert broker == 1
        return ApiVersions(dict.fromkeys(Key, (0, 99)), {}, {})

    async def version(self, broker: int, key: Key, wanted: Sequence[int]) -> int:
        return choose_version(await self.offered(broker), key, wanted)

    async def ask_any(self, call: Any) -> tuple[Call, bytes]:
        made = call(None)
        return made, await self.ask(1, made)

    async def ask(self, _: int, call: Call) -> bytes:
        self.requests[call.key] += 1
        if (error := self.fails(call)) is not None:
            raise error
        if call.key is Key.LIST_GROUPS:
            texts = ("consumer", "Empty", "Classic")
            listed = [
                b"".join(map(flexible_string, (group, *texts))) + _TAGS for group in self.groups
            ]
            return _THROTTLE + _INT16.pack(0) + flexible_array(listed) + _TAGS
        if call.key is Key.FIND_COORDINATOR:
            return _THROTTLE + _INT16.pack(0) + b"\xff\xff" + _INT32.pack(1) + bytes(2) + bytes(4)
        asked = self._names(call)
        if call.key is Key.OFFSET_FETCH:
            return _THROTTLE + flexible_array(map(self._committed, asked)) + _TAGS
        return _THROTTLE + flexible_array(map(self._described, asked)) + _TAGS

    def _names(self, call: Call) -> list[str]:
        reader, names = Reader(call.body, flexible=True), []
        for _ in range(reader.array_length(1)):
            names.append(reader.string())
            if call.key is Key.OFFSET_FETCH:
                reader.take(2)  # no topics, no tags
        return names

    def _committed(self, group: str) -> bytes:
        code = _AUTHORIZATION_FAILED if group in self.refused else _OK
        partition = _INT32.pack(0) + _INT64.pack(7) + bytes(4) + b"\0" + bytes(2) + _TAGS
        topic = flexible_string("orders") + flexible_array([partition]) + _TAGS
        topics = flexible_array([] if code else [topic])
        return flexible_string(group) + topics + _INT16.pack(code) + _TAGS

    def _described(self, group: str) -> bytes:
        there = group in self.groups or group in self.unlisted
        texts = (group, "Empty" if there else "Dead", "consumer", "")
        members = flexible_array(()) + _INT32.pack(0)
        return _INT16.pack(0) + b"".join(map(flexible_string, texts)) + members + _TAGS


class Asking:
    """An asker, and what it tells."""

    def __init__(self, brokers: Brokers) -> None:
        self.errors: list[str] = []
        self.known = AskedGroups()
        self.state = ClusterState("c", {})
        self.answered = set[str]()
        self.alive = 0
        self.asker = GroupAsker(brokers, self.known, self.errors.append, alive=self._is_alive)  # type: ignore[arg-type]

    def _is_alive(self) -> None:
        self.alive += 1

    async def round(self, is_held: Callable[[str], bool] = lambda _: True) -> bool:
        self.errors.clear()
        self.answered.clear()

        async def took(asked_ms: int, answered: AbstractSet[str]) -> None:
            self.state.apply_batch(self.known.take(), asked_ms)
            self.answered |= answered

        return await self.asker.round(Watching(), took, is_held=is_held)

    def remembered(self) -> dict[str, int]:
        """Return how much is remembered of groups, by where that is."""
        return dict(remembered(self.asker))


def remembered(part: object, at: str = "") -> Iterator[tuple[str, int]]:
    """Yield the sizes of all dicts and sets of a part and its parts, but for requests."""
    for name, value in vars(part).items():
        if isinstance(value, dict | set):
            if not any(isinstance(one, tuple | int) for one in value):  # a request, a broker
                yield f"{at}{name}", len(value)
        elif type(value).__module__.startswith("caughtup.agents.kafka.asking"):
            yield from remembered(value, f"{at}{name}.")


async def test_thousands_of_groups_are_asked_about_by_fifties_and_forgotten_when_they_are_gone() -> (
    None
):
    brokers = Brokers(f"group-{number}" for number in range(5_000))
    asking = Asking(brokers)
    for _ in range(2):
        brokers.requests.clear()
        assert await asking.round()
        assert len(asking.answered) == 5_000
        assert sum(brokers.requests.values()) == 1 + 5_000 / MOST_GROUPS
    assert len(asking.state.group_names()) == 5_000
    brokers.groups = []
    brokers.requests.clear()
    assert await asking.round()
    assert sum(brokers.requests.values()) == 1 + 5_000 / MOST_GROUPS
    assert asking.state.group_names() == []
    await asking.round()
    assert set(asking.remembered().values()) == {0}
    assert asking.errors == []


async def test_groups_that_come_and_go_leave_nothing() -> None:
    brokers = Brokers()
    asking = Asking(brokers)
    for turn in range(5):
        brokers.groups = [f"group-{turn}-{number}" for number in range(100)]
        brokers.refused = set(brokers.groups[::2])
        await asking.round()
        assert max(asking.remembered().values()) <= 200
        assert len(asking.state.group_names()) == 50
    brokers.groups = []
    await asking.round()
    assert set(asking.remembered().values()) == {0}


async def test_a_group_that_another_instance_had_meanwhile_is_told_again() -> None:
    asking = Asking(Brokers(["kept", "lent"]))
    await asking.round()
    assert asking.state.group_names() == ["kept", "lent"]
    await asking.round(is_held=lambda group: group == "kept")
    assert asking.state.group_names() == ["kept"]
    assert asking.known.names() == {"kept"}
    await asking.round()
    assert asking.state.group_names() == ["kept", "lent"]


async def test_odd_names_cost_themselves() -> None:
    odd = [
        "",
        " ",
        "a/b\\'\"",
        "\0",
        "ä🜁",
        "x" * 32_767,
        "y" * 32_768,
        "z" * 100_000,
        "same",
        "same",
    ]
    asking = Asking(Brokers(odd))
    for _ in range(2):
        assert await asking.round()
        assert asking.answered == {one for one in odd if len(one) <= 32_767}
        assert asking.errors == ["broker 1: 2 groups' names are too long"]
    assert set(asking.state.group_names()) == asking.answered


async def test_groups_that_are_not_listed_for_a_while_stay() -> None:
    brokers = Brokers(["a", "b"])
    asking = Asking(brokers)
    await asking.round()
    brokers.groups, brokers.unlisted = [], {"a", "b"}
    for error in (None, KafkaConnectionError("closed"), RequestTimedOutError("late")):
        brokers.fails = lambda call, error=error: (  # type: ignore[misc]
            error if call.key is Key.DESCRIBE_GROUPS else None
        )
        await asking.round()
        assert asking.state.group_names() == ["a", "b"]
        assert bool(asking.errors) == (error is not None)


async def test_without_a_broker_that_is_up_nothing_is_gone() -> None:
    brokers = Brokers(["a"])
    asking = Asking(brokers)
    await asking.round()
    brokers.fenced = True
    with pytest.raises(KafkaError, match="fenced"):
        await asking.round()
    assert asking.state.group_names() == ["a"]


@pytest.mark.parametrize("bad", [1, 50])
async def test_a_broker_that_closes_connections_is_not_asked_without_end(bad: int) -> None:
    brokers = Brokers(f"group-{number:03}" for number in range(100))
    names = brokers.groups[:bad]

    def closes(call: Call) -> KafkaError | None:
        hit = any(name.encode() in call.body for name in names)
        return KafkaConnectionError("closed") if call.key is Key.OFFSET_FETCH and hit else None

    brokers.fails = closes
    asking = Asking(brokers)
    await asking.round()
    assert brokers.requests[Key.OFFSET_FETCH] <= 2 + 2 * 16
    assert len(asking.answered) >= 100 - 50
    if bad == 1:
        assert len(asking.answered) == 99
    assert asking.alive >= brokers.requests.total() - 1
