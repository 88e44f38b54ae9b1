"""Checkpoints in folders: found, read, and applied to the state as groups."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from caughtup.agents.checkpoints.stores import LocalStore
from caughtup.models.ids import TopicPartition
from caughtup.models.polls.batch import decode_batch
from caughtup.models.records.fields import json_values
from caughtup.models.shown.groups import group_line
from caughtup.models.shown.lag import partition_lines
from caughtup.models.state.spark_looks import apply_looks
from caughtup.models.watching import WatchPatterns
from tests.support.checkpoints import Checkpoint
from tests.support.groups.records import START_MS, commit
from tests.support.states import list_ends, read
from tests.support.watched_checkpoints import ORDERS, Watched, twelve_batches


@pytest.fixture
def made(tmp_path: Path) -> Checkpoint:
    return twelve_batches(tmp_path / "checkpoints/orders-query")


def test_a_query_is_a_group_at_its_last_committed_batch(made: Checkpoint) -> None:
    made.start(12, START_MS + 5_000, {"orders": {0: 9_999, 1: 5}})
    watched = Watched(made.folder)
    state = watched.look()
    group = "spark:orders-query"
    assert watched.committed() == {
        (group, ORDERS): 1_200,
        (group, TopicPartition("orders", 1)): 5,
    }
    query = state.spark.queries[group]
    assert (query.last.newest, query.committed_ms) == (11, START_MS - 10_000)
    assert (query.last.started, query.last.started_ms) == (12, START_MS + 5_000)
    list_ends(state, {0: 1_250, 1: 5}, topic="orders", at_ms=watched.now_ms)
    summary = json_values(group_line(state, group))
    assert (summary["group_type"], summary["lag"], summary["partitions"]) == ("spark", 50, 2)
    assert "members" not in summary
    lines = list(partition_lines(state, group))
    assert [(one.group_type, one.committed) for one in lines] == [("spark", 1_200), ("spark", 5)]
    assert watched.problems() == {}


def test_the_first_look_tells_the_rhythm_at_once(made: Checkpoint) -> None:
    state = Watched(made.folder).look()
    assert state.commits.interval_ms("spark:orders-query") == 10_000


def test_queries_under_a_folder_are_called_by_their_path(made: Checkpoint, tmp_path: Path) -> None:
    Checkpoint(tmp_path / "checkpoints/team/clicks").batch(0, START_MS, {"clicks": {0: 1}})
    Checkpoint(tmp_path / "checkpoints/a/b/c/too-deep").batch(0, START_MS, {"clicks": {0: 1}})
    (tmp_path / "checkpoints/elsewhere").symlink_to(made.folder)
    watched = Watched(f"file://{tmp_path}/checkpoints/")
    assert watched.look().group_names() == ["spark:orders-query", "spark:team/clicks"]
    watched = Watched(f"prod={tmp_path}/checkpoints", f"mine={made.folder}")
    assert watched.look().group_names() == [
        "spark:mine",
        "spark:prod/orders-query",
        "spark:prod/team/clicks",
    ]


def test_a_name_is_one_query_s(made: Checkpoint, tmp_path: Path) -> None:
    Checkpoint(tmp_path / "other/orders-query").batch(0, START_MS, {"orders": {0: 1}})
    watched = Watched(tmp_path / "checkpoints", tmp_path / "other")
    assert watched.look().group_names() == ["spark:orders-query"]
    assert watched.committed()["spark:orders-query", ORDERS] == 1_200
    assert watched.problems() == {"orders-query": "name_taken"}


def test_batches_that_come_are_steps(made: Checkpoint) -> None:
    watched = Watched(made.folder)
    watched.look()
    made.batch(12, START_MS + 12_000, {"orders": {0: 1_300, 1: 5}})
    made.batch(13, START_MS + 19_000, {"orders": {0: 1_450, 1: 5}})
    history = watched.look().commits.find("spark:orders-query", ORDERS)
    assert history is not None
    assert (history.committed, history.commit_timestamp_ms) == (1_450, START_MS + 19_000)
    assert history.steps.tolist()[-6::3] == [1_300, 1_450]


def test_nothing_is_read_twice(made: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(made.folder)
    watched.look()
    files: list[str] = []
    reading = LocalStore.read
    monkeypatch.setattr(
        LocalStore,
        "read",
        lambda self, path, most: files.append(Path(path).name) or reading(self, path, most),
    )
    watched.look()
    assert files == ["metadata"]


def test_a_query_without_a_batch_is_where_it_began(tmp_path: Path) -> None:
    made = Checkpoint(tmp_path / "new")
    watched = Watched(made.folder)
    assert watched.look().group_names() == []
    made.begin_at({"orders": {0: 40}})
    made.begin_at({"orders": {0: 30}, "clicks": {0: 2}}, source=1)
    made.start(0, START_MS, {"orders": {0: 90}}, {"orders": {0: 90}, "clicks": {0: 9}})
    clicks = TopicPartition("clicks", 0)
    expected = {("spark:new", ORDERS): 30, ("spark:new", clicks): 2}
    for _ in range(2):
        watched.look()
        assert watched.committed() == expected
    made.commit(0, START_MS + 1)
    watched.look()
    assert watched.committed() == {("spark:new", ORDERS): 90, ("spark:new", clicks): 9}


def test_a_query_that_does_not_read_kafka_is_no_group(tmp_path: Path) -> None:
    Checkpoint(tmp_path / "files").batch(0, START_MS, '{"logOffset":3}')
    Checkpoint(tmp_path / "waiting").start(0, START_MS, '{"logOffset":3}')
    watched = Watched(tmp_path)
    assert watched.look().group_names() == []
    assert not watched.state.spark.queries
    assert watched.problems() == {}


def test_a_checkpoint_that_vanishes_takes_its_group_along(made: Checkpoint) -> None:
    beside = Checkpoint(made.folder.parent / "beside")
    beside.batch(0, START_MS, {"orders": {0: 7}})
    watched = Watched(made.folder.parent)
    watched.look()
    shutil.rmtree(made.folder)
    assert watched.look().group_names() == ["spark:beside"]
    assert watched.committed() == {("spark:beside", ORDERS): 7}
    shutil.rmtree(made.folder.parent)
    assert watched.look().group_names() == []
    assert watched.problems() == {"checkpoints": "not_found"}
    assert not watched.state.spark.queries
    assert watched.state.group_type("spark:beside") is None


def test_a_checkpoint_made_anew_went_back(made: Checkpoint) -> None:
    watched = Watched(made.folder)
    watched.look()
    shutil.rmtree(made.folder)
    anew = Checkpoint(made.folder, "another-query")
    anew.batch(0, START_MS - 500_000, {"orders": {0: 10}})  # an old file, copied
    state = watched.look()
    history = state.commits.find("spark:orders-query", ORDERS)
    assert history is not None
    assert (history.committed, history.rewound_from) == (10, 1_200)
    assert history.commit_timestamp_ms == watched.now_ms
    assert (
        "spark:orders-query",
        TopicPartition("orders", 1),
    ) not in watched.committed()


def test_batches_taken_away_by_hand_went_back(made: Checkpoint) -> None:
    watched = Watched(made.folder)
    watched.look()
    for number in (9, 10, 11):
        (made.folder / f"commits/{number}").unlink()
        (made.folder / f"offsets/{number}").unlink()
    watched.look()
    assert watched.committed()["spark:orders-query", ORDERS] == 900


def test_a_query_that_stopped_is_stopped(made: Checkpoint) -> None:
    watched = Watched(made.folder)
    state = watched.look()
    list_ends(state, {0: 1_200, 1: 5}, topic="orders", at_ms=watched.now_ms)
    for _ in range(12):
        watched.look(60_000)
        list_ends(state, {0: 5_000, 1: 5}, topic="orders", at_ms=watched.now_ms)
    for _ in state.assess("spark:orders-query", watched.now_ms):
        pass
    assert state.assessments.verdicts["spark:orders-query"].verdict == "stopped"


def test_patterns_hold_for_queries_and_kafka_has_no_group_of_such_a_name(made: Checkpoint) -> None:
    patterns = WatchPatterns(ignored_topics=("orders",), reserved=("(?s:spark:.*)",))
    watched = Watched(made.folder, patterns=patterns)
    read(watched.look(), commit(0, 4, group="spark:orders-query"))
    assert watched.committed() == {}
    assert watched.state.watching.counts()["folded"] == 1
    patterns = WatchPatterns(ignored_groups=("spark:orders-.*",))
    assert Watched(made.folder, patterns=patterns).look().group_names() == []


def test_a_large_query_is_applied_in_steps(tmp_path: Path) -> None:
    made = Checkpoint(tmp_path / "large")
    for number in range(3):
        made.batch(number, START_MS + number, {"orders": dict.fromkeys(range(5_000), number)})
    watched = Watched(made.folder)
    found = watched.looks.look({}, START_MS + 10)
    assert sum(1 for _ in apply_looks(watched.state, found, START_MS + 10)) == 10
    assert watched.committed() == {
        ("spark:large", TopicPartition("orders", number)): 2 for number in range(5_000)
    }


def test_what_is_read_before_the_log_s_past_stays(made: Checkpoint) -> None:
    watched = Watched(made.folder)
    state = watched.look()
    records = [commit(number, 4, topic="orders", group="billing") for number in range(3)]
    state.apply_batch(decode_batch(records), watched.now_ms, past=True)
    committed = watched.look().commits.last("spark:orders-query")
    assert committed.offsets == [1_200, 5]
    assert state.commits.last("billing").offsets == [4, 4, 4]
