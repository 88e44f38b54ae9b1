"""IncrementalCooperativeAssignor of Kafka 4.3.1: what changes hands in a round, and what waits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from caughtup.models.assignors.java.strings import in_hash_map_order
from caughtup.models.connect.backoff import revocation_backoff_ms
from caughtup.models.connect.balance import beyond_their_shares
from caughtup.models.connect.compared import Compared, compare
from caughtup.models.connect.decision import Assigned, Decision, Delayed, WorkerDecision
from caughtup.models.connect.loads import WorkerLoad, deal_to_least_loaded
from caughtup.models.connect.lost import handle_lost
from caughtup.models.connect.round import MAX_DELAY_MS, Memory, Round
from caughtup.models.connect.work import Item, Work
from caughtup.models.wire.connect_protocol import NOTHING, ConnectorsAndTasks


def decide_incremental(
    round_: Round, memory: Memory, max_delay_ms: int = MAX_DELAY_MS
) -> tuple[Decision, Memory]:
    """Decide a round; return the decision and what the leader remembers after it.

    ``max_delay_ms`` is the leader's ``scheduled.rebalance.max.delay.ms``. There must be a worker.
    Source: Connect's ``IncrementalCooperativeAssignor``.
    """
    work = compare(round_, memory)
    # The leader copies what workers sent from one HashMap into another.
    names = in_hash_map_order(round_.workers, maps=2)
    loads = [WorkerLoad(name, round_.workers[name], once=work.once) for name in names]
    for load in loads:
        load.remove(work.taken)
    lost = handle_lost(work.lost, loads, memory, round_.time_ms, max_delay_ms)
    after, delayed = lost.memory, lost.delayed
    revoked: Mapping[str, ConnectorsAndTasks] = {}
    postponed: Mapping[str, ConnectorsAndTasks] = {}
    if after.delay_ms:
        after = replace(after, revoked_last=False)
    else:
        beyond = beyond_their_shares(work.configured, loads)
        after = _balance(after, bool(beyond), round_.time_ms, max_delay_ms)
        if after.delay_ms:
            delayed, postponed = Delayed.BACK_OFF, beyond
        else:
            revoked = beyond
    for load in loads:
        if load.name in revoked:
            load.remove(Work.of([revoked[load.name]]))
    deal_to_least_loaded(loads, _joined(work.created, lost.deal))
    started = {load.name: load.started for load in loads}
    workers = {
        name: WorkerDecision(
            assigned=started[name],
            revoked=_joined(work.taken.within(owned), revoked.get(name, NOTHING)),
            postponed=postponed.get(name, NOTHING),
        )
        for name, owned in round_.workers.items()
    }
    gone = Work.of(one.revoked for one in workers.values())
    given = Work.of(started.values())
    after = replace(
        after,
        assigned=(work.active - gone) | given | work.lost,
        revoked=gone,
        members=frozenset(round_.workers),
    )
    decision = Decision(
        delay_ms=after.delay_ms,
        delayed=delayed,
        workers=workers,
        revoked_because=work.reasons_to_revoke(gone),
        again_because=_again(work.lost, lost.because),
        unassigned=_unassigned(work, gone, given),
        reassign_at_ms=after.scheduled_rebalance_ms if after.delay_ms else None,
        candidates=after.candidates,
    )
    return decision, after


def _balance(memory: Memory, uneven: bool, now_ms: int, max_delay_ms: int) -> Memory:
    """Return what is remembered of work that is taken away for balance, or has to wait for that."""
    if not uneven:
        if not memory.revoked_last:
            return memory
        return replace(memory, revoked_last=False, successive_revocations=0)
    if not memory.revoked_last:
        return replace(memory, revoked_last=True)
    times = memory.successive_revocations + 1
    delay_ms = revocation_backoff_ms(times, max_delay_ms)
    ends_ms = now_ms + delay_ms if delay_ms else memory.scheduled_rebalance_ms
    return replace(
        memory,
        successive_revocations=times,
        delay_ms=delay_ms,
        scheduled_rebalance_ms=ends_ms,
    )


def _again(lost: Work, because: Assigned | None) -> dict[Item, Assigned]:
    """Return why each lost connector and task is given again, unless it waits."""
    return dict.fromkeys((*lost.connectors, *lost.tasks), because) if because else {}


def _unassigned(work: Compared, gone: Work, given: Work) -> ConnectorsAndTasks:
    """Return what nobody has any more of what is configured, and nobody is given."""
    free = (gone | work.lost) - given
    return (free - work.configured.foreign(free)).in_order()


def _joined(first: ConnectorsAndTasks, second: ConnectorsAndTasks) -> ConnectorsAndTasks:
    if not second:
        return first
    return ConnectorsAndTasks(first.connectors + second.connectors, first.tasks + second.tasks)
