"""Checkpoints that can't be read, or that there are too many of: each costs itself, and is named."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from caughtup.agents.checkpoints.stores import CheckpointStore, LocalStore
from tests.support.checkpoints import Checkpoint
from tests.support.groups.records import START_MS
from tests.support.states import list_ends
from tests.support.watched_checkpoints import ORDERS, Watched, twelve_batches


@pytest.fixture
def made(tmp_path: Path) -> Checkpoint:
    return twelve_batches(tmp_path / "checkpoints/orders-query")


@pytest.mark.parametrize(
    ("file", "value", "reason"),
    [
        ("offsets/12", b"v1\n{}", "bad_json"),
        ("offsets/12", b'v1\n{}\n{"orders":{"0":-5}}', "bad_type"),
        ("offsets/12", b"v9\n{}\n{}", "other_schema"),
        ("offsets/12", b"x" * (17 << 20), "too_large"),
        ("commits/12", b"", "bad_json"),
        ("metadata", b"{", "bad_json"),
    ],
)
def test_a_broken_file_costs_its_query_and_is_counted_once(
    made: Checkpoint, file: str, value: bytes, reason: str
) -> None:
    beside = Checkpoint(made.folder.parent / "beside")
    beside.batch(0, START_MS, {"orders": {0: 7}})
    watched = Watched(made.folder.parent)
    looked = watched.look().spark.queries["spark:orders-query"].looked_ms
    good = (made.folder / "metadata").read_bytes()
    made.batch(12, START_MS + 12_000, {"orders": {0: 1_300, 1: 5}})
    (made.folder / file).write_bytes(value)
    beside.batch(1, START_MS + 12_000, {"orders": {0: 8}})
    for _ in range(3):
        watched.look()
        assert watched.problems() == {"orders-query": reason}
        assert watched.committed()["spark:orders-query", ORDERS] == 1_200
        assert watched.committed()["spark:beside", ORDERS] == 8
    assert watched.state.refused.counts == {("spark checkpoint", reason): 1}
    assert watched.state.spark.queries["spark:orders-query"].looked_ms == looked
    (made.folder / "metadata").write_bytes(good)
    made.batch(12, START_MS + 12_000, {"orders": {0: 1_300, 1: 5}})
    watched.look()
    assert watched.committed()["spark:orders-query", ORDERS] == 1_300
    assert watched.problems() == {}


def test_a_query_whose_checkpoint_cannot_be_read_is_unknown_after_a_while(made: Checkpoint) -> None:
    watched = Watched(made.folder)
    state = watched.look()
    list_ends(state, {0: 1_200, 1: 5}, topic="orders", at_ms=watched.now_ms)
    (made.folder / "metadata").write_bytes(b"{")
    for _ in range(12):
        watched.look(60_000)
        list_ends(state, {0: 5_000, 1: 5}, topic="orders", at_ms=watched.now_ms)
    for _ in state.assess("spark:orders-query", watched.now_ms):
        pass
    verdict = state.assessments.verdicts["spark:orders-query"]
    assert verdict.verdict == "unknown"
    assert "the service has read no commits" in verdict.reason


def test_what_is_not_a_plain_file_is_not_opened(made: Checkpoint) -> None:
    os.mkfifo(made.folder / "offsets/12")
    (made.folder / "offsets/13").symlink_to("/etc/passwd")
    (made.folder / "commits/13").symlink_to("/etc/passwd")
    watched = Watched(made.folder)
    watched.look()
    assert watched.committed()["spark:orders-query", ORDERS] == 1_200
    assert watched.problems() == {}
    (made.folder / "offsets/14").mkdir()
    watched.look()
    assert watched.problems() == {"orders-query": "unreadable"}


def test_folders_without_end_are_looked_through_so_far(
    made: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("caughtup.agents.checkpoints.reading._MOST_FOLDERS", 10)
    watched = Watched(made.folder.parent)
    watched.look()
    for number in range(20):
        (made.folder.parent / f"a{number}").mkdir()
    watched.look()
    assert watched.problems() == {"checkpoints": "too_many"}
    assert watched.committed()["spark:orders-query", ORDERS] == 1_200


def test_a_folder_that_cannot_be_listed_keeps_its_queries(
    made: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = Watched(made.folder.parent.parent)
    watched.look()
    listing = LocalStore.entries

    def entries(self: CheckpointStore, path: str) -> object:
        if path.endswith("/checkpoints"):
            raise PermissionError(13, "Permission denied")
        return listing(self, path)

    monkeypatch.setattr(LocalStore, "entries", entries)
    assert watched.look().group_names() == ["spark:checkpoints/orders-query"]
    assert watched.problems() == {"checkpoints": "unreadable"}


def test_a_name_that_is_no_text_is_a_problem_that_can_be_written(made: Checkpoint) -> None:
    nameless = os.fsencode(made.folder.parent) + b"/q\xff"
    shutil.copytree(os.fsencode(made.folder), nameless)
    watched = Watched(made.folder.parent)
    assert watched.look().group_names() == ["spark:orders-query"]
    ((path, problem),) = watched.state.spark.problems.items()
    assert path.endswith("/q\\udcff")
    assert f"{path} {problem}".encode()


def test_checkpoints_without_end_are_one_problem(
    made: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("caughtup.agents.checkpoints.reading._MOST_QUERIES", 3)
    watched = Watched(made.folder.parent)
    watched.look()
    for number in range(9):
        Checkpoint(made.folder.parent / f"a{number}").batch(0, START_MS, {"orders": {0: 1}})
    assert len(watched.look().group_names()) == 4
    assert "spark:orders-query" in watched.state.group_names()
    assert watched.problems() == {"checkpoints": "too_many"}
