"""Recommendations of groups that are gone are withdrawn from their topic."""

from __future__ import annotations

from typing import Any

import pytest

from caughtup.agents.process.health import Health
from caughtup.agents.topics.keeper import Forgetter
from caughtup.models.state.forgetting import GRACE_MS
from tests.support.decisions import recommendation_of, recommended_record
from tests.support.groups.records import GROUP, START_MS
from tests.support.groups.streams import WARMING, generation
from tests.support.own_topics.kept_topic import KeptTopic
from tests.support.states import cluster_state, read


async def test_a_tombstone_is_written_once_however_often_that_fails(
    caplog: pytest.LogCaptureFixture,
) -> None:
    state = cluster_state()
    state.applications.apply_published(GROUP, recommendation_of(recommended_record(*WARMING)))
    topic: Any = KeptTopic(failures=1)
    forgetter = Forgetter(state, Health(), topic)
    for at_ms in (0, GRACE_MS, GRACE_MS + 1, GRACE_MS + 2):
        await forgetter.forget(START_MS + at_ms)
    assert topic.sent == [(GROUP.encode(), None)]
    assert len(caplog.records) == 1


async def test_a_group_that_has_another_recommendation_keeps_it() -> None:
    state = cluster_state()
    state.applications.apply_published(GROUP, recommendation_of(recommended_record(*WARMING)))
    topic: Any = KeptTopic(failures=1)
    forgetter = Forgetter(state, Health(), topic)
    for at_ms in (0, GRACE_MS):
        await forgetter.forget(START_MS + at_ms)
    read(state, generation(8, *WARMING))
    state.applications.apply_published(
        GROUP, recommendation_of(recommended_record(*WARMING, number=8))
    )
    await forgetter.forget(START_MS + GRACE_MS + 1)
    assert topic.sent == []
