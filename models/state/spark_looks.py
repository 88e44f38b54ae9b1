"""Applies what was read from Spark's checkpoints to the state, in which each query is a group."""

from __future__ import annotations

from collections.abc import Generator

from caughtup.models.commits.applying import made_commits
from caughtup.models.faults import Isolation
from caughtup.models.spark_queries import Look, Looks
from caughtup.models.state.cluster import ClusterState

#: The name of checkpoints among refused records.
CHECKPOINT = "spark checkpoint"


def apply_looks(state: ClusterState, looks: Looks, now_ms: int) -> Generator[None, None, None]:
    """Apply the looks of one time (ms), a step at a time.

    The group of a query whose checkpoint is gone is removed; a problem counts once while it lasts.
    """
    for group in state.spark.gone(looks):
        with _isolated(state, group, now_ms):
            forget_query(state, group)
        yield
    for group, (checkpoint, look) in looks.queries.items():
        yield from apply_look(state, group, checkpoint, look, now_ms)
    before, state.spark.problems = state.spark.problems, looks.problems
    for path, problem in looks.problems.items():
        known = before.get(path)
        if known is None or known.reason != problem.reason:
            key = path.encode(errors="replace")
            state.refused.refuse(CHECKPOINT, key, problem.reason, problem.message, now_ms)


def apply_look(
    state: ClusterState, group: str, checkpoint: str, look: Look, now_ms: int
) -> Generator[None, None, None]:
    """Apply a checkpoint's commits to the group of its query, a step at a time.

    A group that isn't watched is skipped; one that fails is removed.
    """
    if not (state.watching.is_query_watched(group) and state.held.has_group(group)):
        return
    with _isolated(state, group, now_ms):
        topics = state.watching.topic
        for commits in state.spark.commits(group, checkpoint, look, topics, now_ms):
            made = made_commits(group, commits.offsets, commits.at_ms)
            state.apply_commits(made, now_ms)
            yield


def forget_query(state: ClusterState, group: str) -> None:
    """Remove a query and its commits."""
    state.spark.forget(group)
    state.commits.forget_group(group)


def _isolated(state: ClusterState, group: str, now_ms: int) -> Isolation:
    return state.faults.isolated("checkpoints", group, now_ms, lambda _: forget_query(state, group))
