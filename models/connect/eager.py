"""EagerAssignor of Kafka 4.3.1: all work is dealt anew, in turn, in every round."""

from __future__ import annotations

from itertools import cycle

from caughtup.models.assignors.java.strings import utf16
from caughtup.models.connect.configured import Configured
from caughtup.models.connect.decision import Assigned, Decision, WorkerDecision
from caughtup.models.connect.loads import WorkerLoad
from caughtup.models.connect.round import Round
from caughtup.models.connect.work import NO_WORK
from caughtup.models.wire.connect_protocol import NOTHING


def decide_eager(round_: Round) -> Decision:
    """Decide a round: the connectors in turn over the workers by name, and then on with the tasks.

    Workers have given up all they had before they join, so nothing is revoked. There must be a
    worker. Source: Connect's ``EagerAssignor``.
    """
    work = Configured(round_.connectors).missing(NO_WORK, NO_WORK)
    loads = {name: WorkerLoad(name, NOTHING) for name in sorted(round_.workers, key=utf16)}
    in_turn = cycle(loads.values())
    for connector, load in zip(work.connectors, in_turn, strict=False):
        load.connectors.append(connector)
    for task, load in zip(work.tasks, in_turn, strict=False):
        load.tasks.append(task)
    return Decision(
        delay_ms=0,
        delayed=None,
        workers={name: WorkerDecision(loads[name].started) for name in round_.workers},
        revoked_because={},
        again_because={},
        given_because=Assigned.EAGER,
    )
