"""Records of the service's own topics, by somebody who may write to them and says anything."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import partial
from typing import Any, NamedTuple

from caughtup.agents.reassignments.agent import apply_record as apply_look
from caughtup.agents.topics.applying import AppliedTopic
from caughtup.agents.topics.reports import (
    application_states,
    catch_up_rates,
    end_offsets,
    pipeline_progress,
    task_positions,
)
from caughtup.agents.topics.restoration import learned_configs, movements, recommendations
from caughtup.agents.transactions import restore_written
from caughtup.models.state.cluster import ClusterState
from tests.fuzz.values import OFFSETS, OWN_TOPICS, TEXTS, TIMES, Values
from tests.support.damage import damaged
from tests.support.groups.records import GROUP, SOURCE
from tests.support.own_topics.records import SERVICE_RECORDS, ServiceRecord

_ANYTHING: tuple[Any, ...] = (
    *(None, True, 0.5, -1.5, 1e308, 1 << 70, [], {}, [[[[]]]], {"": None}, [None] * 50),
    *(*TEXTS, *OFFSETS, *TIMES),
)


class Told(NamedTuple):
    """A record of one of the service's own topics, and what takes it into a state."""

    topic: str
    key: bytes | None
    value: bytes | None
    apply: Callable[[ClusterState, bytes | None, bytes | None, int], object]


def _apply(
    topic: AppliedTopic[Any],
    state: ClusterState,
    key: bytes | None,
    value: bytes | None,
    now_ms: int,
) -> None:
    topic.apply_record(state, key, value, now_ms, now_ms)


#: What takes a record of a topic: the state, key, value, and the clock (ms).
APPLY: Mapping[str, Callable[[ClusterState, bytes | None, bytes | None, int], object]] = {
    "reassignments": lambda state, key, value, now: apply_look(state, key, value, now),
    "transactions": lambda state, key, value, now: restore_written({}, state, key, value),
    **{
        applied.topic: partial(_apply, applied)
        for applied in (
            recommendations,
            learned_configs,
            movements,
            task_positions,
            application_states,
            catch_up_rates,
            pipeline_progress,
            end_offsets,
        )
    },
}
#: What takes longest to make is made least.
_WEIGHTS = {"recommended-assignments": 1, "application-states": 2, "end-offsets": 6}


class ServiceTopics:
    """Makes records: good ones of a group that misbehaves, with a field or some bytes changed."""

    def __init__(self, values: Values) -> None:
        self._values = values
        self._weights = [_WEIGHTS.get(record.topic, 4) for record in SERVICE_RECORDS]

    def record(self) -> Told:
        values = self._values
        (like,) = values.random.choices(SERVICE_RECORDS, self._weights)
        group, topic = values.group(), values.random.choice(OWN_TOPICS)
        key = _renamed_key(like.key, group, topic)
        value: bytes | None = None
        if not values.chance(0.05):
            changed = self._changed(like, group, topic)
            key = self._freshened(changed, key, topic)
            value = json.dumps(changed).encode()
            if values.chance(0.2):
                value = damaged(values.random, value)
        if values.chance(0.05):
            key = damaged(values.random, key)
        return Told(like.topic, key, value, APPLY[like.topic])

    def _changed(self, like: ServiceRecord, group: str, topic: str) -> Any:
        value = json.loads(_renamed(json.dumps(like.value), group, topic))
        for _ in range(self._values.random.choice((0, 1, 1, 2))):
            self._change(value)
        return value

    def _freshened(self, value: Any, key: bytes, topic: str) -> bytes:
        """Set a record's times to about now and its partition to another; return its key."""
        values = self._values
        if isinstance(value, dict) and values.chance(0.8):
            for name in ("as_of_ms", "at_ms", "decided_at_ms", "published_at_ms", "since_ms"):
                if name in value:
                    value[name] = values.time_ms()
            if "topic_id" in value:
                # Not the others': whoever may write here can lie of any topic, until the next look.
                value["topic_id"] = values.own_topic_id().hex()
            if isinstance(value.get("partition"), int) and key.endswith((b"-0", b"-3")):
                value["partition"] = values.number()
                return f"{topic}-{value['partition']}".encode()
        return key

    def _change(self, value: Any) -> None:
        """Replace, drop or add something, at any depth."""
        random = self._values.random
        while True:
            inner = [
                held
                for held in (value.values() if isinstance(value, dict) else value)
                if isinstance(held, dict | list) and held
            ]
            if not inner or self._values.chance(0.4):
                break
            value = random.choice(inner)
        places = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not places:
            return
        place = random.choice(places)
        match random.randrange(4):
            case 0:
                del value[place]
            case 1 if isinstance(value, dict):
                value[random.choice(TEXTS)] = value[place]
            case _:
                value[place] = deepcopy(random.choice(_ANYTHING))


def _renamed_key(key: bytes, group: str, topic: str) -> bytes:
    if key.startswith(b"["):
        return _renamed(key.decode(), group, topic).encode()
    if key == GROUP.encode():
        return group.encode()
    told, dash, partition = key.decode().rpartition("-")
    return f"{topic}-{partition}".encode() if dash and told else key


def _renamed(text: str, group: str, topic: str) -> str:
    """Rename the group and the topics in a JSON record."""
    for mine in (f"{GROUP}-counts-changelog", SOURCE, "events"):
        text = text.replace(json.dumps(mine), json.dumps(topic))
    return text.replace(json.dumps(GROUP), json.dumps(group))
