"""Exact mode: decide again what the leader decided, and compare with what it assigned."""

from __future__ import annotations

from dataclasses import dataclass

from caughtup.models.assignors import decide
from caughtup.models.assignors.decision import Decision
from caughtup.models.assignors.scenario import parse_scenario
from caughtup.models.errors import ScenarioError
from caughtup.models.groups import StreamsClient, StreamsGeneration
from caughtup.models.ids import TaskId
from caughtup.models.inputs import GenerationInputs

ASSIGNOR = "HighAvailabilityTaskAssignor"
#: What a recomputation can find.
RESULTS = ("match", "mismatch", "undetermined")


@dataclass(frozen=True, slots=True)
class ExactResult:
    """What the recomputation found: ``match``, ``mismatch`` or ``undetermined``, and why."""

    result: str
    why: str
    decision: Decision | None


def recompute(generation: StreamsGeneration, inputs: GenerationInputs) -> ExactResult:
    """Decide a generation again as HighAvailabilityTaskAssignor does, and compare.

    A difference is a mismatch only if every input is known; otherwise it is undetermined, and
    ``why`` names what wasn't known. An agreement is a match either way.
    """
    if not generation.clients:
        return ExactResult("undetermined", "no member could be read", None)
    try:
        decision = decide(parse_scenario(inputs.scenario))
    except ScenarioError as error:
        return ExactResult("undetermined", error.message, None)
    failed = [m for m in generation.members() if m.assignment is None or m.assignment.error_code]
    if failed:
        why = f"the leader gave {failed[0].client_id} no assignment but an error"
        return ExactResult("undetermined", why, decision)
    differences = compare(generation, decision)
    if not differences:
        return ExactResult("match", "", decision)
    doubts = [*inputs.unknown]
    if inputs.assumed:
        doubts.append("configs assumed at Kafka's defaults: " + ", ".join(inputs.assumed))
    doubts += [f"inferred: {line}" for line in inputs.inferred]
    if doubts:
        return ExactResult("undetermined", "; ".join(doubts), decision)
    return ExactResult("mismatch", "; ".join(differences), decision)


def compare(generation: StreamsGeneration, decision: Decision) -> list[str]:
    """List where the assignments on the wire differ from a decision; empty if nowhere.

    A task that changes hands is given to nobody while its owner still has to let go of it, and
    its new client keeps it as a standby until then if it was one there before. A client whose
    only thread owns the task has nobody to wait for. Source:
    StreamsPartitionAssignor.addClientAssignments.
    """
    owned = {t for m in generation.members() for t in generation.tasks_of(m.owned)}
    given = {t for client in generation.clients.values() for t in client.active()}
    held_back = owned - given
    differences: list[str] = []
    for process, client in generation.clients.items():
        wanted = decision.clients[process]
        active, standby = set(wanted.active), set(wanted.standby)
        awaited = active & held_back - _kept(generation, client)
        differences += _say(client, "active", active - awaited, client.active())
        temporary = {
            task
            for task in awaited
            if client.offset_sums.get(task, -2) != -2  # it was a standby there before
        }
        differences += _say(client, "standby", standby, client.standby() - (temporary - standby))
    if not held_back:
        due = generation.next_rebalance()
        if (due is not None) != decision.probing_rebalance_needed:
            needed = "needed" if decision.probing_rebalance_needed else "not needed"
            differences.append(f"a probing rebalance is {needed}, but the leader decided otherwise")
    return differences


def _kept(generation: StreamsGeneration, client: StreamsClient) -> set[TaskId]:
    """Name the tasks that a client can't but keep with the thread that has them."""
    return generation.tasks_of(client.members[0].owned) if client.capacity == 1 else set()


def _say(client: StreamsClient, role: str, wanted: set[TaskId], given: set[TaskId]) -> list[str]:
    return [
        f"{client.name} {verb} {task} as {role}"
        for verb, tasks in (("should have", wanted - given), ("should not have", given - wanted))
        for task in sorted(tasks)
    ]
