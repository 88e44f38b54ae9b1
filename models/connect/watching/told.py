"""What a generation's leader told its workers, held against what was decided again."""

from __future__ import annotations

from collections.abc import Iterator

from caughtup.models.connect.configured import Configured
from caughtup.models.connect.decision import Decision
from caughtup.models.connect.generation import ConnectGeneration, ConnectWorker
from caughtup.models.connect.names import written
from caughtup.models.connect.work import Work
from caughtup.models.wire.connect_protocol import EAGER, NOTHING, ConnectorsAndTasks

#: Differences that a reason names; the others are counted.
_NAMED = 3
#: Characters that a reason has of each.
_CHARACTERS = 200


def worker_id(worker: ConnectWorker) -> str:
    """Name a worker as Connect does, by host and port of its URL; by its client id without one."""
    _, _, rest = worker.said.url.partition("://")
    return rest.partition("/")[0] or worker.client_id


def active(generation: ConnectGeneration) -> Work:
    """Return what workers ran when they joined."""
    return Work.of(worker.said.owned for worker in generation.workers.values())


def assigned(generation: ConnectGeneration) -> Work:
    """Return what workers were told to start."""
    told = (worker.told for worker in generation.workers.values())
    return Work.of(one.assigned for one in told if one is not None)


def revoked(generation: ConnectGeneration) -> Work:
    """Return what workers were told to stop."""
    told = (worker.told for worker in generation.workers.values())
    return Work.of(one.revoked for one in told if one is not None)


def owned_then(generation: ConnectGeneration) -> Work:
    """Return what workers run when all have done as they were told."""
    return Work.of(worker.owns for worker in generation.workers.values())


def config_offset(generation: ConnectGeneration) -> int:
    """Return how far the leader had read the config topic, -1 if it isn't told."""
    told = (worker.told for worker in generation.workers.values())
    return max((one.config_offset for one in told if one is not None), default=-1)


def seen_configuration(generation: ConnectGeneration) -> dict[str, int]:
    """Return the least configuration that has all that is run and assigned; nothing more is known."""
    seen = active(generation) | assigned(generation)
    counts = dict.fromkeys(sorted(seen.connectors), 0)
    for task in sorted(seen.tasks):
        counts[task.connector] = max(task.task + 1, counts.get(task.connector, 0))
    return counts


def unassigned(generation: ConnectGeneration, connectors: dict[str, int]) -> ConnectorsAndTasks:
    """Return what is configured and nobody has when all have done as they were told, in order."""
    has, configured = owned_then(generation), Configured(connectors)
    return configured.missing(has, configured.foreign(has))


def differences(generation: ConnectGeneration, decision: Decision) -> list[str]:
    """List in order where what was told differs from a decision; nothing where it doesn't."""
    return list(_differences(generation, decision))


def _differences(generation: ConnectGeneration, decision: Decision) -> Iterator[str]:
    if generation.delay_ms != decision.delay_ms:
        yield f"the leader announced a delay of {generation.delay_ms} ms, not {decision.delay_ms}"
    eager = generation.protocol == EAGER
    for name in sorted(generation.workers):
        worker, decided = generation.workers[name], decision.workers[name]
        if worker.told is None:
            yield f"{worker_id(worker)} got no assignment"
            continue
        told_to_stop = NOTHING if eager else worker.told.revoked
        for verb, told, would in (
            ("start", worker.told.assigned, decided.assigned),
            ("stop", told_to_stop, decided.revoked),
        ):
            if Work.of([told]) != Work.of([would]):
                yield f"{worker_id(worker)} was told to {verb} {_named(told)}, not {_named(would)}"


def sentence(found: list[str]) -> str:
    """Describe some differences in a sentence."""
    more = f", and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return "; ".join(one[:_CHARACTERS] for one in found[:_NAMED]) + more


def _named(work: ConnectorsAndTasks) -> str:
    return ", ".join(written(work)) or "nothing"
