"""Records of Connect's topics applied, and the topics that settings name."""

from __future__ import annotations

import pytest

from caughtup.agents.configuration.loading import load_settings
from caughtup.agents.connect.reader import configured_topics
from caughtup.agents.errors import UserError
from caughtup.agents.settings import Settings
from caughtup.models.connect_clusters.topic_sets import TopicSet
from tests.support.connect.clusters import settled


def test_settings_name_a_group_and_its_three_topics_whatever_the_groups_name_has():
    settings = Settings(connect_topics=("a:b:conf:stat:off", "c:x:y:z"))
    assert configured_topics(settings) == {
        "a:b": TopicSet("conf", "stat", "off"),
        "c": TopicSet("x", "y", "z"),
    }


@pytest.mark.parametrize("line", ["a:b:c", "a:b:c:", ":b:c:d", ""])
def test_what_names_fewer_is_refused(line: str):
    with pytest.raises(UserError, match="GROUP:CONFIG:STATUS:OFFSET"):
        load_settings(connect_topics=(line,))


def test_a_time_that_is_yet_to_come_counts_as_now_and_a_failure_costs_its_record(
    monkeypatch: pytest.MonkeyPatch,
):
    cluster = settled()
    cluster.group.now_ms = 2**62
    cluster.status("A-0", "FAILED", "W1")
    (topics,) = cluster.state.connect.topics.values()
    at_ms = max(said.at_ms for said in topics.statuses.newest.values())
    assert at_ms < 2**62
    monkeypatch.setattr(topics.statuses, "apply", None)
    cluster.status("A-1", "FAILED", "W1")
    (fault,) = cluster.state.faults.newest()
    assert (fault.part, fault.cause) == ("reading connect status topic", "TypeError")
    cluster.source_offset("A")
    assert topics.offsets.of("A") is not None
