"""What it takes an application to come to rest after an instance came or went."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from caughtup.models.decisions.task_table import TaskCopy
from caughtup.models.groups.generation import StreamsClient, StreamsGeneration
from caughtup.models.ids import ProcessId, TaskId
from caughtup.models.lag.partition_lag import CLOCK_ALLOWANCE_MS

_BEING_BUILT = ("standby", "warmup", "restoring")


@dataclass(frozen=True, slots=True)
class MembershipChange:
    """The last time that instances joined or left an application, and what followed so far.

    ``at_ms`` is the moment of the first generation without those in ``left`` and with those in
    ``joined``, which counts among ``rebalances``; ``at_rest_ms`` that of the first one in which
    every task is assigned and no other rebalance is asked for, None until then. ``waits`` counts the
    rebalances that the application had asked for at a later time and waited for, ``waited_ms`` in
    all. ``copies`` counts how often an instance was given one while it had nothing of a state that
    is not empty.
    """

    at_ms: int
    joined: tuple[str, ...]
    left: tuple[str, ...]
    rebalances: int = 0
    waits: int = 0
    waited_ms: int = 0
    copies: int = 0
    at_rest_ms: int | None = None


def followed(
    change: MembershipChange | None,
    before: StreamsGeneration | None,
    generation: StreamsGeneration,
    copies: Iterable[TaskCopy],
) -> MembershipChange | None:
    """Return the change that a generation belongs to, with what the generation adds to it.

    ``before`` is the generation that was decided before it, ``copies`` are those that it gave
    (``given_copies``). None where nobody joined or left since the first generation that is known.
    What comes after the application is at rest adds nothing.
    """
    if before is None:
        return None
    if before.clients.keys() != generation.clients.keys():
        joined = generation.clients.keys() - before.clients.keys()
        left = before.clients.keys() - generation.clients.keys()
        change = MembershipChange(
            generation.as_of_ms, _names(generation.clients, joined), _names(before.clients, left)
        )
        rebalances, waited = 1, 0
    elif change is None or change.at_rest_ms is not None:
        return change
    else:
        rebalances = max(generation.generation - before.generation, 1)
        waited = waited_ms(before, generation)
    return replace(
        change,
        rebalances=change.rebalances + rebalances,
        waits=change.waits + (waited > 0),
        waited_ms=change.waited_ms + waited,
        copies=change.copies + begun(before, copies),
        at_rest_ms=generation.as_of_ms if _is_at_rest(generation) else None,
    )


def waited_ms(before: StreamsGeneration, generation: StreamsGeneration) -> int:
    """Return how long (ms) a group waited for a generation, as the one before had asked it to.

    0 where it was asked for at once, or came earlier for another reason. The clock that says when
    it is due is the leader's, and may be ahead.
    """
    due = before.next_rebalance()
    if due is None:
        return 0
    asked, waited = due[0] - before.as_of_ms, generation.as_of_ms - before.as_of_ms
    early = min(CLOCK_ALLOWANCE_MS, asked // 2)
    return waited if 0 < asked <= waited + early else 0


def begun(before: StreamsGeneration, copies: Iterable[TaskCopy]) -> int:
    """Count the copies that are to be built from nothing, and weren't already being built.

    Their processes reported no offset of them, and had them not in the generation before.
    """
    clients = {str(process): client for process, client in before.clients.items()}
    given: dict[str, set[TaskId]] = {}
    count = 0
    for copy in copies:
        if copy.role not in _BEING_BUILT or copy.offset_sum != 0 or copy.end_offset_sum == 0:
            continue
        if copy.process not in given:
            client = clients.get(copy.process)
            given[copy.process] = client.active() | client.standby() if client else set()
        count += copy.task not in given[copy.process]
    return count


def _is_at_rest(generation: StreamsGeneration) -> bool:
    if generation.next_rebalance() is not None:
        return False
    running = {task for client in generation.clients.values() for task in client.active()}
    return generation.all_tasks() == running


def _names(
    clients: dict[ProcessId, StreamsClient], processes: Iterable[ProcessId]
) -> tuple[str, ...]:
    return tuple(sorted(clients[process].name for process in processes))
