"""One generation as evidence of its leader's configs: decisions under any configs, compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

from caughtup.models.assignment.client_state import UNBOUNDED
from caughtup.models.assignment.configs import NEWEST, Release
from caughtup.models.assignment.decision import Decision
from caughtup.models.assignment.racks import TaskReplicas, find_racks
from caughtup.models.assignment.scenario import Scenario
from caughtup.models.assignors.kafka.public_sticky.assignor import decide_public_sticky
from caughtup.models.assignors.kafka.sticky import (
    LeaderOrders,
    decide_fallback_prior,
    decide_sticky,
)
from caughtup.models.assignors.registry import decide
from caughtup.models.decisions.exact.comparison import Difference, compare_members, process_differs
from caughtup.models.decisions.inputs.gathering import (
    GenerationInputs,
    members_of,
    unsettled,
    with_end_offset_sums,
)
from caughtup.models.errors import ScenarioError
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.histories.offset_sums import EndOffsetSum
from caughtup.models.ids import ProcessId, TaskId
from caughtup.models.learning.ranges import Algorithm, ConfigRange, IntSpan, united
from caughtup.models.learning.target import Target, target_of
from caughtup.models.learning.unknown_ends import limits_by_task, without_ends
from caughtup.models.partition_assignor.rebalance import ClientMetadata, clients_of
from caughtup.models.partition_assignor.task_partitions import TaskPartitions, leader_orders

#: Assignors that depend on the iteration orders of a leader's collections.
_STICKY = {"sticky": decide_sticky, "fallback_prior": decide_fallback_prior}


class Evidence:
    """One generation from ``__consumer_offsets``, decided again under any configs.

    ``doubts`` are the unknown inputs, whatever the configs; ``unsettled`` are the
    acceptable.recovery.lags for which end offsets aren't known exactly enough. ``copies_given``
    counts standbys and warm-ups, ``held_back`` the tasks that no member runs for now. ``is_quiet``:
    no member's assignment has a time of a next rebalance. ``decisions`` counts those made. Raises
    ScenarioError if the inputs are no valid scenario.
    """

    def __init__(self, generation: StreamsGeneration, inputs: GenerationInputs) -> None:
        self.generation = generation
        self.decisions = 0
        self._inputs = inputs
        self._scenario = inputs.scenario.expanded()
        self._targets: dict[tuple[Algorithm, int], Target] = {}
        #: An algorithm and standbys → another algorithm with the same target.
        self._alike: dict[tuple[Algorithm, int], Algorithm] = {}
        self._orders: dict[Release, LeaderOrders] = {}
        self._made: dict[tuple[Algorithm, int, int, int], Decision] = {}
        self._differences: dict[tuple[Algorithm, int, int, int], list[Difference]] = {}
        given = [one.assignment for one in generation.members() if one.assignment is not None]
        active = {task for one in given for task in one.active}
        self.copies_given = sum(len(one.standby) for one in given)
        self.held_back = len(inputs.scenario.tasks.keys() - active)
        leads = any(one.member_id == generation.leader for one in generation.members())
        self.is_quiet = leads and all(one.next_rebalance_ms is None for one in given)

    @property
    def clients(self) -> int:
        """The number of processes."""
        return len(self._scenario.clients)

    @property
    def lags(self) -> int:
        """The number of lags that a decision reads."""
        return self.clients * len(self._scenario.stateful)

    def releases(self, one: ConfigRange) -> list[IntSpan]:
        """Return a range's releases, latest first, cut where decisions may differ."""
        algorithm, found = one.algorithm, one.releases
        cuts = {Release.V3_0, Release.V3_2}
        if algorithm.assignor == "high_availability":
            cuts.add(Release.V3_3)
        if self.held_back:
            cuts.add(Release.V3_5_2)
        if algorithm.strategy != "none":
            cuts.add(Release.V3_7)
        lows = sorted({found.low, *(cut for cut in cuts if found.low < cut <= found.high)})
        highs = [*(low - 1 for low in lows[1:]), found.high]
        return [IntSpan(low, high) for low, high in zip(lows, highs, strict=True)][::-1]

    @cached_property
    def doubts(self) -> tuple[str, ...]:
        """The unknown inputs, whatever the configs, in words."""
        about_lag = {unsettled(task, end) for task, end in self._inputs.ends.items() if end}
        return tuple(one for one in self._inputs.unknown if one not in about_lag)

    @cached_property
    def _limits(self) -> Mapping[TaskId, list[tuple[int, int]]]:
        return limits_by_task(self.processes.values(), self._inputs.ends)

    @cached_property
    def unsettled(self) -> tuple[IntSpan, ...]:
        """The lags for which it is unknown which clients are caught up: disjoint spans, sorted."""
        return united(IntSpan(*limits) for own in self._limits.values() for limits in own)

    @property
    def unsettled_tasks(self) -> list[str]:
        """The tasks whose end offset sum isn't known exactly enough, in words."""
        ends = self._inputs.ends
        return [unsettled(task, end) for task in self._limits if (end := ends[task]) is not None]

    @cached_property
    def inexact(self) -> Mapping[TaskId, EndOffsetSum]:
        """The end offset sums that are known within bounds only, sorted by task."""
        ends = sorted(self.ends.items())
        return {task: end for task, end in ends if end is not None and end.low < end.high}

    @property
    def ends(self) -> Mapping[TaskId, EndOffsetSum | None]:
        """The bounds of each stateful task's end offset sum, None if it has none."""
        return self._inputs.ends

    def with_ends(self, ends: Mapping[TaskId, int]) -> Evidence:
        """Return the same generation with exactly these end offset sums of some tasks."""
        exactly = Evidence(
            self.generation, with_end_offset_sums(self._inputs, self.processes, ends)
        )
        # These depend on no end offset.
        exactly.processes, exactly._orders = self.processes, self._orders
        return exactly

    def copies(self, algorithm: Algorithm, standbys: int) -> int:
        """Return the number of standbys that an assignor without warm-ups assigns."""
        decision = self.decide(algorithm, standbys, 1, 0)
        return sum(len(given.standby) for given in decision.clients.values())

    def standbys_given(self) -> range:
        """Return the possible numbers of standbys per task, if there are no warm-ups.

        A task that is held back may have a standby meanwhile, and so count as one. The last number
        stands for all greater ones.
        """
        stateful = max(1, len(self._scenario.stateful))
        least = -(-(self.copies_given - self.held_back) // stateful)
        return range(max(0, least), min(self.copies_given // stateful, self.clients - 1) + 1)

    def decide(self, algorithm: Algorithm, standbys: int, warm_ups: int, lag: int) -> Decision:
        """Return the decision under these configs, computed once.

        Raises ScenarioError as assignors do.
        """
        key = self._key(algorithm, standbys, warm_ups, lag)
        made = self._made.get(key)
        if made is None:
            self.decisions += 1
            made = self._made[key] = self._decide(*key)
        return made

    def differences(
        self, algorithm: Algorithm, standbys: int, warm_ups: int, lag: int
    ) -> list[Difference]:
        """Return how the members' assignments differ from the decision under these configs."""
        key = self._key(algorithm, standbys, warm_ups, lag)
        if self.held_back or algorithm.release < Release.V3_2:
            # Releases differ in the standbys of tasks held back, and in how threads get tasks.
            key = key[0]._replace(release=algorithm.release), *key[1:]
        found = self._differences.get(key)
        if found is None:
            decision = self.decide(algorithm, standbys, warm_ups, lag)
            scenario = replace(self._scenario, release=algorithm.release)
            found = self._differences[key] = self._compare(
                scenario, decision, from_hash_map=algorithm.assignor == "public_sticky"
            )
        return found

    def judged_differences(
        self, algorithm: Algorithm, standbys: int, warm_ups: int, lag: int
    ) -> list[Difference]:
        """Return the differences that tell something about these configs.

        The clients of a public assignor's standbys are unpredictable, and threads' actives depend on
        them, so that only the actives of its processes count.
        """
        if algorithm.assignor == "public_sticky" and standbys:
            decision = self.decide(algorithm, standbys, warm_ups, lag)
            return [Difference(text, True) for text in self.other_actives(decision)]
        return self.differences(algorithm, standbys, warm_ups, lag)

    def processes_differ(self, decision: Decision) -> bool:
        """Return whether a process has other tasks than in a decision, on whichever thread."""
        return any(
            process_differs(client, decision.clients[process], self.owned)
            for process, client in self.generation.clients.items()
        )

    def other_actives(self, decision: Decision) -> list[str]:
        """Return the processes that run other tasks than a decision assigns them, in words.

        Only actives count, on whichever thread; a task may be missing if another member had it.
        """
        found = []
        for process, client in self.generation.clients.items():
            has, should = client.active(), {*decision.clients[process].active}
            if has - should or should - has - self.owned:
                found.append(f"{client.name} should run other tasks")
        return found

    @cached_property
    def owned(self) -> frozenset[TaskId]:
        """The tasks that any member had when the leader decided."""
        generation = self.generation
        return frozenset(t for m in generation.members() for t in generation.tasks_of(m.owned))

    def target(self, algorithm: Algorithm, standbys: int) -> Target:
        """Return the placement that the high availability assignor aims for, regardless of lags."""
        algorithm = self._key(algorithm, standbys, 1, UNBOUNDED)[0]
        key = algorithm, standbys
        found = self._targets.get(key)
        if found is None:
            decision = self.decide(algorithm, standbys, 1, UNBOUNDED)
            for (other, number), target in self._targets.items():
                same = other._replace(tags=()) == algorithm._replace(tags=())
                if same and number == standbys and target.decision == decision:
                    self._alike[key] = other
                    found = target
                    break
            else:
                found = target_of(self._scenario, decision)
            self._targets[key] = found
        return found

    def is_explained_without_ends(self, algorithm: Algorithm, standbys: int) -> bool:
        """Return whether the leader may have decided this because it could not list end offsets.

        The high availability assignor is then replaced by the fallback for this one time; the
        sticky ones go on, and threads get their tasks in another order. Source:
        StreamsPartitionAssignor.createTaskAssignor.
        """
        unknown = replace(without_ends(self._scenario), release=algorithm.release)
        if algorithm.assignor == "high_availability":
            self.decisions += 1
            configs = replace(unknown.configs, num_standby_replicas=standbys)
            fallback = replace(unknown, configs=configs)
            decision = decide_fallback_prior(fallback, self._leader_orders(algorithm.release))
        else:
            decision = self.decide(algorithm, standbys, 1, 0)
        from_hash_map = algorithm.assignor == "public_sticky"
        differences = self._compare(unknown, decision, from_hash_map=from_hash_map)
        return not any(one.certain for one in differences)

    def _key(
        self, algorithm: Algorithm, standbys: int, warm_ups: int, lag: int
    ) -> tuple[Algorithm, int, int, int]:
        """Return the same key for configs that make no difference.

        More standbys than other clients make none, and tags affect only the target.
        """
        standbys = min(standbys, self.clients - 1)
        algorithm = algorithm._replace(release=self._deciding(algorithm, standbys, warm_ups, lag))
        if algorithm.assignor != "high_availability":
            return algorithm, standbys, 1, 0
        if not standbys:
            algorithm = algorithm._replace(tags=())
        return self._alike.get((algorithm, standbys), algorithm), standbys, warm_ups, lag

    def _deciding(self, algorithm: Algorithm, standbys: int, warm_ups: int, lag: int) -> Release:
        """Return the newest release that assigns tasks to processes as this one does.

        Before 3.3 copies that wait had another order, which makes a difference only if any copy
        waits.
        """
        release = algorithm.release
        if algorithm.strategy != "none":
            return release
        if release == Release.V3_2 and algorithm.assignor == "high_availability":
            newest = algorithm._replace(release=NEWEST)
            waits = lag < UNBOUNDED
            waits = waits and self.decide(newest, standbys, warm_ups, lag).probing_rebalance_needed
            return release if waits else NEWEST
        return NEWEST if release >= Release.V3_2 else release

    def _decide(self, algorithm: Algorithm, standbys: int, warm_ups: int, lag: int) -> Decision:
        configs = replace(
            self._scenario.configs,
            num_standby_replicas=standbys,
            max_warmup_replicas=warm_ups,
            acceptable_recovery_lag=lag,
            rack_aware_assignment_tags=algorithm.tags,
        )
        scenario = replace(
            self._scenario, assignor=algorithm.assignor, configs=configs, release=algorithm.release
        )
        if algorithm.strategy != "none":
            scenario = with_racks(scenario, algorithm, self._inputs, self.processes)
        if algorithm.assignor == "public_sticky":
            return decide_public_sticky(scenario, arrival=tuple(self.processes))
        if algorithm.assignor in _STICKY:
            return _STICKY[algorithm.assignor](scenario, self._leader_orders(algorithm.release))
        return decide(scenario)

    def _compare(
        self, scenario: Scenario, decision: Decision, *, from_hash_map: bool = False
    ) -> list[Difference]:
        return compare_members(
            self.generation,
            scenario,
            self._inputs.scenario.tasks,
            decision,
            self._inputs.ends,
            from_hash_map=from_hash_map,
        )

    def _leader_orders(self, release: Release) -> LeaderOrders:
        if release in self._orders:
            return self._orders[release]
        tasks = self._inputs.scenario.tasks
        partitions = TaskPartitions(
            {task: one.sources for task, one in tasks.items()},
            {task: one.changelogs for task, one in tasks.items() if one.stateful},
        )
        found = self._orders[release] = leader_orders(tuple(self.processes), partitions, release)
        return found

    @cached_property
    def processes(self) -> Mapping[ProcessId, ClientMetadata]:
        """The processes in the order in which the leader met them."""
        return clients_of(members_of(self.generation))


def with_racks(
    scenario: Scenario,
    algorithm: Algorithm,
    inputs: GenerationInputs,
    processes: Mapping[ProcessId, ClientMetadata],
) -> Scenario:
    """Return a scenario with an algorithm's strategy and costs, and the racks for them (KIP-925).

    Raises ScenarioError ``missing_field`` if the replicas' racks were not looked up.
    """
    if inputs.replicas is None:
        raise ScenarioError("missing_field", "replicas: caughtup has not looked up their racks")
    traffic, non_overlap = algorithm.costs or (None, None)
    configs = replace(
        scenario.configs,
        rack_aware_assignment_strategy=algorithm.strategy,
        rack_aware_assignment_traffic_cost=traffic,
        rack_aware_assignment_non_overlap_cost=non_overlap,
    )
    tasks = inputs.scenario.tasks
    task_replicas = TaskReplicas(
        {task: tuple(sorted(one.sources)) for task, one in tasks.items()},
        {task: tuple(sorted(one.changelogs)) for task, one in tasks.items()},
        inputs.replicas,
    )
    # The public interface has one rack per process, Kafka's own all its consumers'.
    public = algorithm.assignor == "public_sticky"
    own = {id_: one.racks[0] if public else one.rack for id_, one in processes.items()}
    clients = tuple(replace(client, rack=own[client.process_id]) for client in scenario.clients)
    racks = find_racks(task_replicas, configs, [client.rack for client in clients])
    return replace(
        scenario, configs=configs, clients=clients, task_replicas=task_replicas, racks=racks
    )


def seen_standbys(generation: StreamsGeneration) -> int:
    """Return the number of standbys of most tasks that have any, which excludes warm-ups.

    0 if fewer than half of the stateful subtopologies' tasks have one: warm-ups are few at a time.
    """
    active: set[TaskId] = set()
    counts: Counter[TaskId] = Counter()
    for client in generation.clients.values():
        active |= client.active()
        counts.update(client.standby())
    stateful = {task.subtopology for task in counts}
    tasks = sum(task.subtopology in stateful for task in active | counts.keys())
    several = sorted(counts.values())
    return several[len(several) // 2] if 2 * len(several) > tasks else 0
