"""Applications with drawn configs, played generation by generation: decided by our own assignors."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from caughtup.models.assignment.configs import NEWEST, Release, releases_of
from caughtup.models.decisions.inputs.gathering import GenerationInputs, gather_inputs
from caughtup.models.groups.generation import StreamsClient, StreamsGeneration, StreamsMember
from caughtup.models.histories.end_offset_table import EndOffsetTable
from caughtup.models.ids import ProcessId, TaskId, TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.parameters import ApplicationParameters
from caughtup.models.partition_assignor.assignment import assign_partitions
from caughtup.models.partition_assignor.member_assignment import MemberAssignment
from caughtup.models.partition_assignor.rebalance import MemberSubscription, Rebalance, TopicsInfo
from caughtup.models.wire.user_data import VERSIONS, AssignmentInfo
from tests.models.learning.processes import Process
from tests.models.learning.truths import Truth, draw_truth

GROUP = "orders"
RACKS = ["north", "south", "west"]
START_MS = 1_790_000_000_000


@dataclass(frozen=True)
class Played:
    """A generation, what is known of it from outside, and when it was read (ms)."""

    generation: StreamsGeneration
    inputs: GenerationInputs
    seen_ms: int
    truth: Truth
    ends: EndOffsetTable


class Application:
    """An application, made from a seed, whose ``truth`` may be changed while it is played.

    ``doubts`` is how often (0 to 1) end offsets aren't known exactly, ``missing`` how often one of
    these has no upper bound, and ``failures`` how often its leader doesn't get any. With ``tasks`` it has one subtopology of so many. ``releases`` are
    those that its release is drawn from, and ``racked`` says whether its members have racks.
    """

    def __init__(
        self,
        seed: object,
        *,
        doubts: float = 0.1,
        failures: float = 0.03,
        missing: float = 0.02,
        tasks: int | None = None,
        releases: Sequence[Release] = (NEWEST,),
        racked: bool = False,
    ) -> None:
        self.rng = rng = random.Random(f"application {seed}")
        self.keys = tuple(rng.choice([(), (), ("zone",), ("cluster", "zone")]))
        self.racked = racked
        self.truth = draw_truth(rng, self.keys, racked=racked, releases=releases)
        self.doubts, self.failures, self.missing = doubts, failures, missing
        self.stateful: list[TaskId] = []
        self.subtopologies: dict[int, TopicsInfo] = {}
        self.widths: dict[str, int] = {}
        for number in range(rng.randint(1, 3) if tasks is None else 1):
            stateful = number == 0 or rng.random() < 0.6
            width = rng.randint(2, 12) if tasks is None else tasks
            log = (f"{GROUP}-store{number}-changelog",) if stateful else ()
            self.subtopologies[number] = TopicsInfo((f"in{number}",), log)
            self.widths[f"in{number}"] = width
            self.stateful += [TaskId(number, n) for n in range(width if stateful else 0)]
        self.ends = {task: rng.choice([0, 50, 200_000, 1_000_000]) for task in self.stateful}
        self.growth = rng.choice([0, 1, 30, 3_000])
        self.replicas = self._replicas() if racked else {}
        self.now_ms = START_MS
        self.number = rng.randint(1, 50)
        self.processes: list[Process] = []
        for _ in range(rng.randint(1, 4)):
            self._join()

    @property
    def parameters(self) -> ApplicationParameters:
        """What the operator tells: nothing but the changelogs."""
        logs = {number: one.changelogs for number, one in self.subtopologies.items()}
        return ApplicationParameters(changelogs=logs)

    def play(self, generations: int) -> Iterator[Played]:
        """Play so many generations."""
        for _ in range(generations):
            yield self.rebalance()
            self.live()

    def live(self) -> None:
        """Let time pass, or members join, leave and bounce, unless a rebalance is due at once."""
        rng = self.rng
        if self._is_due:
            self.now_ms += rng.randint(200, 5_000)
            return
        event = rng.choice(
            ["time", "time", "time", "time", "join", "join", "leave", "bounce", "lose"]
        )
        if event == "join" and len(self.processes) < 6:
            self._join()
        elif event == "leave" and len(self.processes) > 1:
            self.processes.remove(rng.choice(self.processes))
        elif event in ("bounce", "lose"):
            self._bounce(rng.choice(self.processes), keeps=event == "bounce")
        self.now_ms += rng.choice([20_000, 600_000])
        for task in self.stateful:
            self.ends[task] += rng.randint(0, self.growth)
        self._restore()

    def rebalance(self) -> Played:
        """Have the leader decide, and return what can be seen of it."""
        rng, began_ms = self.rng, self.now_ms
        self.number += 1
        self.now_ms += rng.randint(0, 3_000)
        order = [(process, thread) for process in self.processes for thread in process.threads]
        rng.shuffle(order)
        members = tuple(process.member(thread) for process, thread in order)
        leader = order[0][0].id
        given = self._assign(members, leader)
        generation = self._generation(members, given, order[0][1], began_ms)
        seen_ms = self.now_ms + rng.randint(1_100, 4_000)
        ends = self._ends_seen(began_ms, seen_ms)
        inputs = gather_inputs(generation, self.parameters, ends, {}, seen_ms)
        if self.racked:
            inputs = replace(inputs, replicas=self.replicas)
        self._carry_out(given)
        self.now_ms = seen_ms + 2_000
        return Played(generation, inputs, seen_ms, self.truth, ends)

    def _assign(
        self, members: tuple[MemberSubscription, ...], leader: ProcessId
    ) -> dict[str, MemberAssignment]:
        fails = self.rng.random() < self.failures
        ends = {self._changelog(task): end for task, end in self.ends.items()}
        rebalance = Rebalance(
            name=None,
            assignor=self.truth.assignor,
            configs=self.truth.configs(),
            now_ms=self.now_ms,
            leader=leader,
            subtopologies=self.subtopologies,
            partitions=self.widths,
            new_topics=frozenset(),
            replicas=self.replicas,
            end_offsets=None if fails else ends,
            committed={},
            members=members,
            release=self.truth.release,
        )
        return assign_partitions(rebalance)

    def _replicas(self) -> dict[TopicPartition, list[str | None]]:
        """Draw the racks of the replicas of whatever is read and restored from."""
        widths = dict(self.widths)
        for number, one in self.subtopologies.items():
            widths |= dict.fromkeys(one.changelogs, self.widths[f"in{number}"])
        return {
            TopicPartition(topic, number): [*self.rng.sample(RACKS, self.rng.randint(1, 2))]
            for topic, width in widths.items()
            for number in range(width)
        }

    def _changelog(self, task: TaskId) -> TopicPartition:
        return TopicPartition(self.subtopologies[task.subtopology].changelogs[0], task.partition)

    def _generation(
        self,
        members: tuple[MemberSubscription, ...],
        given: dict[str, MemberAssignment],
        leader: str,
        began_ms: int,
    ) -> StreamsGeneration:
        read = [self._read(member, given[member.member_id]) for member in members]
        clients: dict[ProcessId, list[StreamsMember]] = {}
        for one in sorted(read, key=lambda one: one.member_id):
            clients.setdefault(one.process, []).append(one)
        return StreamsGeneration(
            group=GROUP,
            generation=self.number,
            leader=leader,
            as_of_ms=began_ms,
            clients={id_: StreamsClient(id_, tuple(own)) for id_, own in sorted(clients.items())},
            source_topics={f"in{number}": number for number in self.subtopologies},
            arrival=tuple(member.member_id for member in members),
        )

    def _read(self, member: MemberSubscription, given: MemberAssignment) -> StreamsMember:
        info = AssignmentInfo(
            11, 11, given.active, dict(given.standby), {}, {}, 0, given.next_rebalance_ms
        )
        return StreamsMember(
            member_id=member.member_id,
            client_id=member.member_id,
            host="",
            process=member.process,
            owned=member.owned,
            offset_sums=dict(member.offset_sums),
            client_tags=dict(member.tags),
            rack=member.rack,
            assigned=given.partitions,
            assignment=info,
            latest_version=next(v for v in VERSIONS if self.truth.release in releases_of(v)),
        )

    def _ends_seen(self, began_ms: int, seen_ms: int) -> EndOffsetTable:
        """Return end offsets as the probe lists them: mostly exact, at times bounds, rarely none."""
        rng, table = self.rng, EndOffsetTable()
        hazy = rng.random() < self.doubts
        for task, end in self.ends.items():
            partition = self._changelog(task)
            low = high = end
            if hazy and rng.random() < 0.5:
                low, high = max(0, end - rng.randint(0, 500)), end + rng.randint(0, 500)
            table.apply(partition, EndOffsets(0, low, low, began_ms - 10_000))
            if not (hazy and rng.random() < self.missing):
                table.apply(partition, EndOffsets(0, high, high, seen_ms + 1))
        return table

    def _carry_out(self, given: dict[str, MemberAssignment]) -> None:
        self._is_due = any(one.held_back for one in given.values())
        for process in self.processes:
            running: set[TaskId] = set()
            for thread in process.threads:
                own = given[thread]
                process.owned[thread] = own.partitions
                process.tasks[thread] = tuple(sorted({*own.active, *own.standby}))
                running |= {task for task in own.active if task in self.ends}
            for task in process.running - running:
                process.positions[task] = self.ends[task]  # it closed cleanly
            for task in running:
                process.positions.setdefault(task, 0)
            for tasks in process.tasks.values():
                for task in tasks:
                    if task in self.ends:
                        process.positions.setdefault(task, 0)
            # An active that isn't restored yet says how far it is.
            process.running = {
                task
                for task in running
                if process.positions[task] >= self.ends[task] - 500 or self.rng.random() < 0.7
            }

    def _restore(self) -> None:
        """Let copies catch up, some wholly, some by a part; state that nobody has is cleaned up."""
        rng = self.rng
        for process in self.processes:
            held = {task for tasks in process.tasks.values() for task in tasks}
            for task in sorted(process.positions):
                end, at = self.ends[task], process.positions[task]
                if task in held:
                    left = end - at
                    step = rng.choice([left, left, left - rng.randint(0, 200), left // 2])
                    process.positions[task] = at + max(0, min(left, step))
                elif rng.random() < 0.3:
                    del process.positions[task]
            started = {t for own in process.owned.values() for t in self._tasks(own)}
            process.running |= {task for task in started if rng.random() < 0.8}

    def _tasks(self, partitions: tuple[TopicPartition, ...]) -> set[TaskId]:
        found = {TaskId(int(one.topic.removeprefix("in")), one.partition) for one in partitions}
        return found & self.ends.keys()

    def _join(self) -> None:
        rng = self.rng
        id_ = ProcessId.of(rng.getrandbits(128))
        name = f"{rng.getrandbits(32):08x}"
        threads = tuple(f"{name}-{n}" for n in range(rng.choice([1, 1, 2, 3])))
        tags = {key: rng.choice("abc") for key in self.keys}
        rack = rng.choice(RACKS) if self.racked else None
        self.processes.append(Process(id_, threads, tags, rack))
        self._is_due = False

    def _bounce(self, process: Process, *, keeps: bool) -> None:
        """Restart an instance, which keeps its state, or loses it and its process id."""
        for task in process.running:
            process.positions[task] = self.ends[task]
        name = f"{self.rng.getrandbits(32):08x}"
        threads = tuple(f"{name}-{n}" for n in range(len(process.threads)))
        again = replace(process, threads=threads, owned={}, tasks={}, running=set())
        if not keeps:
            again = replace(again, id=ProcessId.of(self.rng.getrandbits(128)), positions={})
        self.processes[self.processes.index(process)] = again
