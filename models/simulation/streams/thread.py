"""A stream thread in virtual time: a group member that runs tasks and restores their states."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from caughtup.models.ids import TaskId, TopicPartition
from caughtup.models.offsets import LATEST_OFFSET
from caughtup.models.partition_assignor.member_assignment import MemberAssignment
from caughtup.models.partition_assignor.rebalance import MemberSubscription
from caughtup.models.simulation.streams.instance import SimulatedInstance
from caughtup.models.simulation.streams.restoration import Restoration
from caughtup.models.simulation.streams.shared_state import SharedState
from caughtup.models.simulation.time_line import Activity
from caughtup.models.simulation.virtual_time import Event


class SimulatedThread:
    """One stream thread. Its ``member_id`` is new each time that its instance starts.

    ``ask`` is called with the member id when the thread requests a rebalance. ``number`` is the
    thread's in its instance, from 1 on.
    """

    def __init__(
        self,
        shared: SharedState,
        instance: SimulatedInstance,
        number: int,
        member_id: str,
        ask: Callable[[str], None],
    ) -> None:
        self.member_id = member_id
        static = shared.application.static_members
        self.instance_id = f"{instance.name}-{number}" if static else None
        self._instance = instance
        self._ask = ask
        self._shared = shared
        self._application = shared.application
        self.owned: tuple[TopicPartition, ...] = ()
        #: Active tasks: True once they are processed.
        self.active: dict[TaskId, bool] = {}
        self.standby: set[TaskId] = set()
        self.generation = 0
        self._suspended: set[TaskId] = set()
        self._starting: dict[TaskId, Event] = {}
        self._probing: Event | None = None
        self.restoration = Restoration(
            self._shared.time,
            self._shared.ends,
            self._application.restore_per_second * instance.restores,
            self._restored,
            self._caught_up,
        )

    @property
    def answers(self) -> bool:
        """Whether heartbeats are sent: the instance runs, and has not restarted since."""
        return self._instance.answers and self.member_id in self._instance.members

    @property
    def probes(self) -> bool:
        """Whether the thread will request a probing rebalance."""
        return self._probing is not None

    @property
    def next_rebalance_ms(self) -> int | None:
        """When the thread will request a rebalance, on the leader's clock; None if it won't."""
        return None if self._probing is None else self._probing.at_ms + self._shared.epoch_ms

    def prepare(self) -> None:
        """Give up all partitions before joining again, if the protocol is eager.

        Running tasks are suspended: their states stay open, and a thread that keeps one goes on.
        """
        if self._application.eager:
            self.owned = ()
            for task in sorted(self.active):
                if self.active[task]:
                    self.active[task] = False
                    self._suspended.add(task)
                    self._shared.ends.grow(task, grows=False)
                    self._shared.does(task, self._instance.name, None)

    def subscription(self) -> MemberSubscription:
        """Return the thread's partitions, and the offset sums of its states."""
        return MemberSubscription(
            self.member_id,
            self._instance.process,
            owned=self.owned,
            offset_sums=self._offset_sums(),
            end_point=None,
            tags=self._instance.tags,
            rack=self._instance.rack,
        )

    def assigned(self, generation: int, assignment: MemberAssignment) -> None:
        """Close revoked tasks, begin new ones, and join again if any was revoked."""
        self.generation = generation
        if self._probing is not None:
            self._probing.cancel()
            self._probing = None
        active, standby = set(assignment.active), set(assignment.standby)
        revoked = not self._application.eager and bool(self.active.keys() - active)
        for task in sorted(self.active.keys() - active):
            self._close_active(task)
        for task in sorted(self.standby - standby):
            self._close_standby(task, recycled=task in active)
        self.owned = assignment.partitions
        for task in sorted(self._suspended):
            self.active[task] = True
        self._suspended.clear()
        for task in sorted(active - self.active.keys()):
            self._begin_active(task)
        for task in sorted(standby - self.standby):
            self._begin_standby(task)
        self._see_whether_all_run()
        if revoked or assignment.next_rebalance_ms == 0:
            self._ask(self.member_id)
        elif assignment.next_rebalance_ms is not None:
            self._probing = self._shared.time.at(
                assignment.next_rebalance_ms - self._shared.epoch_ms, self._probe
            )

    def resume(
        self,
        active: Collection[TaskId],
        standby: Collection[TaskId],
        offset_sums: Mapping[TaskId, int],
        next_rebalance_ms: int | None,
    ) -> None:
        """Begin with tasks in the middle of a run: an active without an offset sum runs."""
        sources = self._shared.tasks.sources
        self.owned = tuple(sorted(one for task in active for one in sources[task]))
        for task in sorted(active):
            self.active[task] = task not in offset_sums
            if task in offset_sums:
                self._shared.does(task, self._instance.name, Activity.RESTORING)
                self.restoration.add(task, offset_sums[task], active=True)
        for task in sorted(standby):
            self.standby.add(task)
            self._shared.does(task, self._instance.name, Activity.WARMING)
            self.restoration.add(task, offset_sums.get(task, 0), active=False)
        self._see_whether_all_run()
        if next_rebalance_ms is not None:
            self._probing = self._shared.time.at(
                next_rebalance_ms - self._shared.epoch_ms, self._probe
            )

    def stop(self, *, checkpoint: bool) -> None:
        """Close all tasks; their states stay on disk, as they are or as they were checkpointed."""
        if self._probing is not None:
            self._probing.cancel()
            self._probing = None
        for task in sorted(self.active):
            self._close_active(task, checkpoint=checkpoint)
        for task in sorted(self.standby):
            self._close_standby(task, checkpoint=checkpoint)
        self.owned = ()

    def _probe(self) -> None:
        self._probing = None
        if self.answers:
            self._shared.mark("probing", f"{self._instance.name} asks for a rebalance")
            self._ask(self.member_id)

    def _offset_sums(self) -> dict[TaskId, int]:
        sums: dict[TaskId, int] = {}
        for task, runs in self.active.items():
            if task in self._shared.ends:
                if task in self.restoration:
                    sums[task] = int(self.restoration.position(task))
                else:
                    sums[task] = LATEST_OFFSET if runs else int(self._shared.ends.end(task))
        for task in self.standby:
            sums[task] = int(self.restoration.position(task))
        for task, at in self._instance.unowned_states(self.member_id).items():
            sums[task] = int(at)
        return sums

    def _begin_active(self, task: TaskId) -> None:
        self.active[task] = False
        if task not in self._shared.ends:
            self._start_after(task, self._application.task_start_ms)
            return
        at = self._instance.take_state(task)
        if at >= self._shared.ends.end(task):
            self._start_after(task, self._application.task_start_ms)
        else:
            self._shared.does(task, self._instance.name, Activity.RESTORING)
            self._shared.restores(task, self._instance.name, at)
            self.restoration.add(task, at, active=True, start_ms=self._application.restore_start_ms)

    def _begin_standby(self, task: TaskId) -> None:
        self.standby.add(task)
        at = self._instance.take_state(task)
        self._shared.does(task, self._instance.name, Activity.WARMING)
        self._shared.restores(task, self._instance.name, at)
        start_ms = self._application.restore_start_ms
        self.restoration.add(task, at, active=False, start_ms=start_ms)

    def _start_after(self, task: TaskId, delay_ms: int) -> None:
        self._starting[task] = self._shared.time.after(delay_ms, lambda: self._ready(task))

    def _ready(self, task: TaskId) -> None:
        self._starting.pop(task, None)
        self.active[task] = True
        self._see_whether_all_run()

    def _restored(self, task: TaskId) -> None:
        self._ready(task)

    def _see_whether_all_run(self) -> None:
        """Update activities: until 3.7 all of a thread's tasks wait while any active restores."""
        waits = self._application.waits_for_thread and not all(self.active.values())
        for task in sorted(self.active):
            if self.active[task]:
                doing = Activity.WAITING if waits else Activity.PROCESSING
                self._shared.does(task, self._instance.name, doing)
                self._shared.ends.grow(task, grows=not waits)

    def _caught_up(self, task: TaskId, at_end: bool) -> None:
        self._shared.does(
            task, self._instance.name, Activity.FOLLOWING if at_end else Activity.WARMING
        )

    def _close_active(self, task: TaskId, *, checkpoint: bool = True) -> None:
        self.active.pop(task)
        self._suspended.discard(task)
        if task in self._starting:
            self._starting.pop(task).cancel()
        self._shared.ends.grow(task, grows=False)
        if task in self._shared.ends:
            if task in self.restoration:
                at = self.restoration.remove(task)
            else:
                at = self._shared.ends.end(task)
            self._instance.leave_state(task, at, checkpoint=checkpoint)
        self._shared.does(task, self._instance.name, None)

    def _close_standby(
        self, task: TaskId, *, recycled: bool = False, checkpoint: bool = True
    ) -> None:
        self.standby.discard(task)
        at = self.restoration.remove(task)
        self._instance.leave_state(task, at, checkpoint=checkpoint)
        if not recycled:
            self._shared.does(task, self._instance.name, None)
