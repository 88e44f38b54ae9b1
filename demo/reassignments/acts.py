"""The acts: reassignments of every kind, healthy and not, on a real cluster of six nodes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

from caughtup.demo.reassignments.stage import ORPHANED, ReassignmentStage, StagedReassignment
from caughtup.models.errors import CaughtupError
from caughtup.models.ids import TopicPartition

NODES, CONTROLLERS = 6, 3
#: What can be played, and the method that does.
ACTS: Final[Mapping[str, str]] = {
    "healthy": "healthy_reassignments",
    "taken back": "cancelled_reassignments",
    "starved": "a_starved_reassignment",
    "target lost": "a_target_is_lost",
    "leader lost": "a_leader_is_lost",
    "controller lost": "the_controller_is_lost",
    "throttle left": "a_throttle_is_left",
}
#: The acts that are short enough for tests; others take minutes, or an idle machine.
SHORT_ACTS: Final = ("taken back", "starved")
_RATE: Final = 1_500_000
_STARVING_RATE: Final = 200_000
_MID_COPY_SECONDS: Final = 8.0
_OUT_OF_SIGHT_SECONDS: Final = 6.0
_LEFT_SECONDS: Final = 780.0


class StagedReassignments:
    """The acts, in any order. Each returns its reassignments once they have ended.

    ``quorum_leader`` returns the active controller. Raises CaughtupError ``stage_failed`` if the
    cluster does not do what an act needs.
    """

    def __init__(self, stage: ReassignmentStage, quorum_leader: Callable[[], int]) -> None:
        self._stage = stage
        self._quorum_leader = quorum_leader

    def play(self, act: str) -> list[StagedReassignment]:
        """Play one of ACTS; return its reassignments. Raises CaughtupError for another name."""
        if act not in ACTS:
            raise CaughtupError("unknown_act", f"no act {act!r}: there are {', '.join(ACTS)}")
        reassignments: list[StagedReassignment] = getattr(self, ACTS[act])()
        return reassignments

    def healthy_reassignments(self) -> list[StagedReassignment]:
        """Unthrottled, throttled in plateaus, and a new order of the same replicas."""
        stage = self._stage
        with stage.watch() as watch:
            full = stage.topic("full-speed", [1, 2], megabytes=300)
            throttled = stage.topic("plateaus", [1, 2], megabytes=60)
            order = stage.topic("reordered", [4, 5], megabytes=5)
            with stage.throttled(throttled, _RATE):
                reassignments = [
                    stage.start(watch, "healthy, at full speed", full, [3, 4], "completed"),
                    stage.start(watch, "healthy, throttled", throttled, [5, 6], "completed"),
                ]
                reordered = StagedReassignment(
                    "only the order of replicas changes", order, listed=False
                )
                stage.reassign(watch.add(reordered).partition, [5, 4])
                stage.await_ends(reassignments)
        return [*reassignments, reordered]

    def cancelled_reassignments(self) -> list[StagedReassignment]:
        """Cancelled; retargeted and then cancelled; and the topic deleted, all mid-copy."""
        stage = self._stage
        with stage.watch() as watch:
            cancelled, reverted, deleted = (
                stage.topic(name, [1], megabytes=40)
                for name in ("cancelled", "sent-elsewhere", "deleted")
            )
            with stage.throttled(cancelled, _RATE), stage.throttled(reverted, _RATE):
                stage.throttle(deleted, _RATE)
                reassignments = [
                    stage.start(watch, "cancelled", cancelled, [4], "cancelled"),
                    stage.start(
                        watch, "sent elsewhere, cancelled", reverted, [4, 5], "reverted-partial"
                    ),
                    stage.start(watch, "topic deleted", deleted, [5], "vanished"),
                ]
                time.sleep(_MID_COPY_SECONDS)
                stage.reassign(cancelled, None)
                stage.reassign(reverted, [4, 6])
                time.sleep(_OUT_OF_SIGHT_SECONDS)
                stage.reassign(reverted, None)
                stage.delete(deleted)
                stage.await_ends(reassignments)
        return reassignments

    def a_starved_reassignment(self) -> list[StagedReassignment]:
        """More is written than the throttle lets through; then the throttle is removed."""
        stage = self._stage
        with stage.watch() as watch:
            starved = stage.topic("starved", [4, 5], megabytes=20)
            with stage.throttled(starved, _STARVING_RATE), stage.writing(starved):
                staged = stage.start(
                    watch, "throttle starved by writes", starved, [4, 6], "completed"
                )
                staged.due, staged.cause = "throttled out", "throttle-starved"
                staged.also = "diverging"  # while a little still gets through
                stage.await_named([staged])
            stage.await_ends([staged])
        return [staged]

    def a_target_is_lost(self) -> list[StagedReassignment]:
        """A destination dies mid-copy and comes back; other reassignments to it start meanwhile."""
        stage = self._stage
        with stage.watch() as watch:
            lost = stage.topic("target-lost", [1, 2], megabytes=60)
            fenced = stage.topic("target-fenced", [2, 3], megabytes=5)
            blocked = stage.topic("retained-lost", [1, 2, 3, 6], megabytes=5)
            with stage.throttled(lost, _RATE):
                dies = stage.start(watch, "target killed mid-copy", lost, [1, 6], "completed")
                time.sleep(_MID_COPY_SECONDS)
                stage.cluster.kill_node(6)
                dies.due, dies.trouble_at = "dead target", time.monotonic()
                stage.cluster.wait_ready()
                never = stage.start(
                    watch, "target fenced from the start", fenced, [2, 6], "completed"
                )
                never.due = "dead target"
                # One replica less than before: the controller waits for all of them.
                waits = stage.start(watch, "retained replica down", blocked, [2, 6, 4], "completed")
                waits.due, waits.cause = "blocked", "retained-replica-down"
                reassignments = [dies, never, waits]
                stage.await_named(reassignments)
                stage.cluster.start_node(6)
                stage.await_ends(reassignments)
        return reassignments

    def a_leader_is_lost(self) -> list[StagedReassignment]:
        """The leader dies mid-copy; another replica takes over, and the reassignment goes on."""

        def leader_dies() -> int:
            self._stage.cluster.kill_node(5)
            self._stage.cluster.wait_ready()
            return 5

        topic = self._stage.topic("leader-lost", [5, 4], megabytes=60)
        return self._survived("leader killed mid-copy", topic, [2, 3], leader_dies)

    def the_controller_is_lost(self) -> list[StagedReassignment]:
        """The active controller dies mid-copy: nothing of the reassignment changes."""

        def controller_dies() -> int:
            controller = self._quorum_leader()
            self._stage.cluster.kill_node(controller)
            return controller

        topic = self._stage.topic("controller-lost", [4, 5], megabytes=60)
        return self._survived("active controller killed", topic, [4, 6], controller_dies)

    def _survived(
        self,
        name: str,
        partition: TopicPartition,
        target: list[int],
        dies: Callable[[], int],
    ) -> list[StagedReassignment]:
        """Kill a node mid-copy (``dies`` kills and returns it), and start it again at the end."""
        stage = self._stage
        with stage.watch() as watch:
            with stage.throttled(partition, _RATE):
                staged = stage.start(watch, name, partition, target, "completed")
                time.sleep(_MID_COPY_SECONDS)
                node = dies()
                stage.await_ends([staged])
            stage.cluster.start_node(node)
            stage.clear_throttle(partition)
        return [staged]

    def a_throttle_is_left(self) -> list[StagedReassignment]:
        """A reassignment ends, and its throttle is not removed."""
        stage = self._stage
        with stage.watch() as watch:
            partition = stage.topic("throttle-left", [1, 2], megabytes=10)
            stage.throttle(partition, _RATE)
            staged = stage.start(watch, "throttle left behind", partition, [1, 3], "completed")
            stage.await_ends([staged])
            staged.due, staged.trouble_at = ORPHANED, time.monotonic()
            stage.await_named([staged], _LEFT_SECONDS)
            stage.clear_throttle(partition)
        return [staged]
