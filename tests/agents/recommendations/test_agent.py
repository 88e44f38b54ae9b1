"""What goes out for a decision, again when its topic was made anew, and the line for the log."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import faust
import msgspec
import pytest
from faust.app.base import BootStrategy

from caughtup.agents.clock import now_ms
from caughtup.agents.kept_channel import Wakeup, kept_channel
from caughtup.agents.process.health import Health
from caughtup.agents.recommendations import agent as recommender
from caughtup.agents.recommendations.agent import Recommender, recommend, summary
from caughtup.agents.recommendations.signing import Signer
from caughtup.models.decisions.learned_configs import LearnedUntil
from caughtup.models.decisions.recommendation import MOST_WRITTEN_BYTES, encode_recommendation
from caughtup.models.learning.learned import Learned
from caughtup.models.records.fields import changed, json_values
from caughtup.models.records.recommendations import RecommendationRecord
from caughtup.models.state.cluster import ClusterState
from tests.support.decisions import a_recommendation
from tests.support.groups.records import GROUP
from tests.support.groups.streams import WARMING, generation
from tests.support.own_topics.kept_topic import KeptTopic
from tests.support.states import TOLD, cluster_state, known_ends, list_ends, read


def test_what_is_published_is_json_without_loss() -> None:
    record = json_values(a_recommendation(*WARMING))
    assert msgspec.json.decode(msgspec.json.encode(record)) == json.loads(json.dumps(record))


def test_the_log_says_in_one_line_what_was_decided_and_why_the_leader_differs() -> None:
    assert summary(a_recommendation(*WARMING)) == "orders generation 7: 1 movements, leader match"
    differing = a_recommendation(replace(WARMING[0], probe_at_ms=None), WARMING[1])
    assert summary(differing) == (
        "orders generation 7: 1 movements, leader mismatch "
        "(no configs of Kafka's assignors explain it: "
        "a-StreamThread-1-consumer should ask for a probing rebalance, but asks for no rebalance)"
    )


class _WithoutKafka(BootStrategy):
    enable_kafka = False


class _App(faust.App):
    BootStrategy = _WithoutKafka


async def test_a_topic_made_anew_gets_the_newest_recommendation_of_each_group(
    tmp_path: Path,
) -> None:
    app = _App("recommends", datadir=tmp_path, web_enabled=False)
    state, health, wakeups = cluster_state(), Health(ready=True), kept_channel(app)
    older, newer = a_recommendation(*WARMING), changed(a_recommendation(*WARMING), generation=8)
    endless = changed(older, cluster="c" * MOST_WRITTEN_BYTES)
    for group, known in ((GROUP, older), (GROUP, newer), ("gone", older), ("large", endless)):
        state.applications.apply_published(group, known)
    recommendations, movements = KeptTopic("recommendations"), KeptTopic("movements")
    learned = KeptTopic("learned-configs")
    state.applications.learned.restore("gone", LearnedUntil(Learned(), 7, 1_000))
    signer = Signer(None, state.cluster)
    hurry, turn = asyncio.Event(), asyncio.Lock()
    recommend(app, wakeups, state, health, recommendations, learned, movements, hurry, signer, turn)
    await app.start()
    try:
        health.standby = "host:1 is active"
        await wakeups.put(Wakeup.RECREATED)
        await wakeups.put(Wakeup.TIME)
        async with asyncio.timeout(10):
            while wakeups.queue.qsize():  # noqa: ASYNC110 - nothing tells when it is so
                await asyncio.sleep(0.01)
        health.standby = None
        await wakeups.put(Wakeup.RECREATED)
        async with asyncio.timeout(10):
            found = await recommendations.first(2)
        assert [(key, record["generation"]) for key, record in found] == [
            (b"gone", 7),
            (b"orders", 8),
        ]
        assert len(recommendations.sent) == 2
        assert [key for key, _ in learned.sent] == [b"gone"]
        assert movements.sent == []
        assert [aside.reason for aside in state.set_aside.of("large")] == ["too_large"]
    finally:
        await app.stop()


async def test_a_recommendation_that_is_too_large_is_set_aside_and_the_others_are_published(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def bounded(one: RecommendationRecord) -> bytes:
        return encode_recommendation(one, 1_000 if one.group == "large" else MOST_WRITTEN_BYTES)

    monkeypatch.setattr(recommender, "encode_recommendation", bounded)
    state = ClusterState("cluster-1", {"large": TOLD, GROUP: TOLD})
    known_ends(state, now_ms() - 120_000)
    list_ends(state, at_ms=now_ms() + 60_000)
    for group in ("large", GROUP):
        read(
            state,
            generation(7, *WARMING, group=group, at_ms=now_ms() - 10_000),
            seen_ms=now_ms() - 5_000,
        )
    recommendations, movements = KeptTopic("recommendations"), KeptTopic("movements")
    learned = KeptTopic("learned-configs")
    signer = Signer(None, state.cluster)
    await Recommender(state, recommendations, learned, movements, signer).decide()
    assert [key for key, _ in recommendations.sent] == [GROUP.encode()]
    assert {group: known.published for group, known in state.applications.items()} == {
        "large": 0,
        GROUP: 1,
    }
    assert [aside.reason for aside in state.set_aside.of("large")] == ["too_large"]
    assert {key for key, _ in learned.sent} == {b"large", GROUP.encode()}
    told = {key for key, _ in movements.sent}
    assert told == {b"large", GROUP.encode()}
