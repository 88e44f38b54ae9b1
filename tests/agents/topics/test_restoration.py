"""Reading back what was published, and telling a person why a cluster doesn't answer."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError

from caughtup.agents.clock import now_ms
from caughtup.agents.kafka import first_contact
from caughtup.agents.kafka.first_contact import unreachable
from caughtup.agents.recommendations.signing import Signer
from caughtup.agents.settings import Settings
from caughtup.agents.topics import restoration
from caughtup.agents.topics.consumer import ConsumerRecord
from caughtup.agents.topics.read_to_end import Accepts
from caughtup.agents.topics.restoration import movements, recommendations, restore_published
from caughtup.models.decisions import applications
from caughtup.models.decisions.learned_configs import learned_record
from caughtup.models.parameters import ApplicationParameters
from caughtup.models.records.learned_configs import FORMAT as LEARNED
from caughtup.models.records.movements import PartitionMovementRecord
from caughtup.models.records.topics import LEARNED_CONFIGS, RECOMMENDATIONS
from caughtup.models.security.signing import HEADER, SigningKey, sign
from tests.support.decisions import decided_state, recommended_record
from tests.support.groups.records import GROUP, START_MS
from tests.support.groups.streams import WARMING, generation
from tests.support.own_topics.malformed import malformed
from tests.support.own_topics.records import service_records
from tests.support.states import cluster_state, known_ends, publish, state_with_ends
from tests.support.states import read as read_records

SETTINGS = Settings(bootstrap_servers="kafka.example:9093")


def test_a_published_recommendation_is_taken_up_with_its_generation() -> None:
    record = recommended_record(*WARMING, now_ms=START_MS)
    state = cluster_state()
    recommendations.apply_record(state, GROUP.encode(), json.dumps(record).encode())
    read_records(state, generation(7, *WARMING))
    assert publish(state, START_MS) == []
    assert state.applications.awaited() == []


@pytest.mark.parametrize(
    ("reason", "key", "value"),
    [
        *malformed(GROUP.encode(), b'{"schema": 1}'),
        pytest.param("bad_type", GROUP.encode(), b'{"generation": 7}', id="somebody else's"),
        pytest.param("bad_key", b"\xff", b"{}", id="a key that is not UTF-8"),
        pytest.param("bad_key", None, b"{}", id="no key"),
    ],
)
def test_a_malformed_one_is_refused_and_the_generation_decided(
    reason: str, key: bytes | None, value: bytes
) -> None:
    state = state_with_ends()
    recommendations.apply_record(state, key, value)
    assert state.refused.counts == {("recommended-assignments", reason): 1}
    read_records(state, generation(7, *WARMING))
    assert len(publish(state, START_MS)) == 1


def test_what_an_instance_published_whose_clock_is_minutes_ahead_is_not_published_again() -> None:
    record = recommended_record(*WARMING, now_ms=START_MS)
    ahead_ms = now_ms() + 9 * 60_000
    state = state_with_ends()
    value = json.dumps({**record, "decided_at_ms": ahead_ms}).encode()
    recommendations.apply_record(state, GROUP.encode(), value)
    assert state.refused.counts == {}
    read_records(state, generation(7, *WARMING))
    assert publish(state, START_MS) == []
    (event,) = (one for one in service_records() if one.name == "task movement")
    movements.apply_record(state, event.key, event.changed(at_ms=ahead_ms))
    assert state.refused.counts == {}


def test_a_tombstone_withdraws_what_was_published() -> None:
    record = recommended_record(*WARMING)
    state = state_with_ends()
    recommendations.apply_record(state, GROUP.encode(), json.dumps(record).encode())
    recommendations.apply_record(state, GROUP.encode(), None)
    assert state.refused.counts == {}
    read_records(state, generation(7, *WARMING))
    assert len(publish(state, START_MS)) == 1


def test_what_was_learned_is_taken_up_and_what_breaks_the_rules_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ((group, known),) = decided_state(
        *WARMING, parameters=ApplicationParameters()
    ).applications.learned.each()
    good = LEARNED.encode(learned_record(group, known))
    poisoned = json.loads(good)
    poisoned["hypotheses"][0]["max_warmup_replicas"] = [0, 1]
    upside_down = json.loads(good)
    upside_down["hypotheses"][0]["acceptable_recovery_lag"] = [5, 4]
    written = [
        (group.encode(), good),
        (group.encode(), json.dumps(poisoned).encode()),
        (group.encode(), json.dumps(upside_down).encode()),
        (b"others", good),
    ]

    def read(_: object, __: object, name: str, *___: object) -> Iterator[tuple[bytes, bytes]]:
        return iter(written if name == LEARNED_CONFIGS else [])

    monkeypatch.setattr(restoration, "read_service_topic", read)
    state = cluster_state()
    asyncio.run(restore_published(SETTINGS, state, None))
    assert state.applications.learned.newest(group) == known
    assert state.refused.counts == {
        ("learned-configs", "bad_type"): 2,
        ("learned-configs", "bad_key"): 1,
    }


@pytest.mark.parametrize(
    ("reason", "headers"),
    [
        pytest.param(None, None, id="the service's own"),
        pytest.param("not_signed", [], id="without a signature"),
        pytest.param("bad_signature", [(HEADER, b"hmac-sha256:one:" + b"0" * 64)], id="forged"),
        pytest.param("not_signed", [(HEADER, None)], id="a header without a value"),
    ],
)
def test_at_a_takeover_only_what_is_signed_spares_deciding(
    reason: str | None,
    headers: list[tuple[str, bytes | None]] | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    key = SigningKey("one", bytes(range(32)))
    file = tmp_path / "keys"
    file.write_text(f"one {base64.b64encode(key.secret).decode()}\n")
    record = recommended_record(*WARMING)
    value, state = json.dumps(record).encode(), cluster_state()
    if headers is None:
        headers = [(HEADER, sign(key, state.cluster, GROUP, value))]
    # What is refused crowds out nothing that was written before it.
    genuine = ConsumerRecord(b"others", None, START_MS)
    signed = ConsumerRecord(GROUP.encode(), value, START_MS, headers=dict(headers))
    written = [genuine, *[signed] * 5, ConsumerRecord(None, value, START_MS)]

    def read(
        _: object, __: object, name: str, ___: object, accepts: Accepts | None = None
    ) -> Iterator[tuple[bytes | None, bytes | None]]:
        for one in written if name == RECOMMENDATIONS else []:
            if accepts is None or accepts(one):
                yield one.key, one.value

    monkeypatch.setattr(restoration, "read_service_topic", read)
    asyncio.run(restore_published(SETTINGS, state, Signer(file, state.cluster).forgeries()))
    name = "recommended-assignments"
    refused = {} if reason is None else {(name, reason): 5}
    assert state.refused.counts == {(name, "bad_key"): 1, **refused}
    known_ends(state)
    read_records(state, generation(7, *WARMING))
    assert len(publish(state, START_MS)) == (0 if reason is None else 1)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (KafkaError._AUTHENTICATION, "refused the credentials: check sasl.* under [kafka]"),
        (KafkaError.SASL_AUTHENTICATION_FAILED, "refused the credentials"),
        (KafkaError._SSL, "no TLS connection to kafka.example:9093"),
        (KafkaError._TRANSPORT, "cannot reach Kafka at kafka.example:9093"),
        (KafkaError._TIMED_OUT, "look at the brokers' logs"),
    ],
)
def test_a_cluster_that_does_not_answer_is_named_with_what_to_check(
    code: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for looked_for in ("diagnose", "_unreachable_brokers"):
        monkeypatch.setattr(first_contact, looked_for, lambda _: None)
    message = unreachable(SETTINGS, KafkaError(code)).message
    assert words in message
    assert "kafka.example:9093" in message
    assert "\n" not in message


def test_events_of_partitions_movements_are_read_back_and_malformed_ones_refused() -> None:
    state = cluster_state()
    event = {"schema": 1, "event": "planned", "kind": "partition", "topic": "t", "partition": 3}
    event |= {"from": [1], "to": [2], "at_ms": 5}
    future = json.dumps(event | {"at_ms": 4_102_444_800_000}).encode()
    bad = (json.dumps(event | {"to": 2}).encode(), b"[]", None, future)
    for value in (json.dumps(event).encode(), *bad):
        movements.apply_record(state, b"t-3", value)
    assert state.reassignment_events.on_their_way() == [
        PartitionMovementRecord(1, "planned", "partition", "t", 3, 5, (2,), (1,))
    ]
    assert state.refused.of("movements") == len(bad)


def test_of_too_many_groups_no_recommendation_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(applications, "MOST_GROUPS", 1)
    record = recommended_record(*WARMING)
    state = cluster_state()
    for group in (GROUP, "others", GROUP):
        value = json.dumps(record | {"group": group}).encode()
        recommendations.apply_record(state, group.encode(), value)
    assert state.applications.groups_with_records() == {GROUP}
    assert state.refused.counts == {("recommended-assignments", "too_many"): 1}
