"""EagerAssignor of Kafka 4.3.1: each round assigns all work, to the workers in turn."""

from __future__ import annotations

from itertools import cycle

from caughtup.models.assignors.java.strings import utf16
from caughtup.models.connect.decision import Assigned, ConnectDecision, WorkerDecision
from caughtup.models.connect.loads import WorkerLoad
from caughtup.models.connect.round import Round
from caughtup.models.connect.work import NO_WORK, Configured
from caughtup.models.wire.connect_protocol import NOTHING


def decide_eager(round_: Round) -> ConnectDecision:
    """Return a round's decision: connectors, then tasks, to the workers in turn, by name.

    Workers stop all work before they join, so nothing is revoked. The round has a worker.
    Source: Connect's ``EagerAssignor``.
    """
    work = Configured(round_.connectors).missing(NO_WORK, NO_WORK)
    loads = {name: WorkerLoad(name, NOTHING) for name in sorted(round_.workers, key=utf16)}
    in_turn = cycle(loads.values())
    for connector, load in zip(work.connectors, in_turn, strict=False):
        load.connectors.append(connector)
    for task, load in zip(work.tasks, in_turn, strict=False):
        load.tasks.append(task)
    return ConnectDecision(
        delay_ms=0,
        delayed=None,
        workers={name: WorkerDecision(loads[name].started) for name in round_.workers},
        revoked_because={},
        again_because={},
        given_because=Assigned.EAGER,
    )
