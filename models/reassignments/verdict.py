"""How a partition's movement fares, in one word, from what was found of each of its replicas.

From the top, the first that holds is the verdict:

=============  ================================================================================
measuring      looked at fewer than three times
unknown        not looked at any more, or without replicas: nothing is known
no source      it has had no leader that runs for a minute
completing     all that the controller waits for is in sync, or it is no longer listed
stalled        the controller hasn't completed it half a minute after that
dead target    a broker to which it moves is down, fenced, or without that log directory
stalled        a copy has something to get and stands for longer than W
throttled out  the same, and in-sync replicas are known to use up its throttle
blocked        all copies are there, but one cannot join the ISR, or a replica that stays is down,
               or out of sync and stands
diverging      a copy gets less than its leader does: certainly, and for two W
slow           there after the budget, if one was given
moving         a copy grows
unknown        of the others not enough is known
measuring      no copy was seen to grow, which may take W
tail           all copies are there, about to join the ISR
=============  ================================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from caughtup.models.reassignments.awaited_replica import (
    DEAD,
    DIVERGING,
    MEASURING,
    MOVING,
    STALLED,
    STARVED,
    STUCK,
    TAIL,
    UNKNOWN,
    Evidence,
    Finding,
)
from caughtup.models.reassignments.tracking.observation import PartitionObservation

#: Every verdict that there is, the best first.
VERDICTS = (
    "completing",
    "tail",
    "moving",
    "measuring",
    "unknown",
    "slow",
    "diverging",
    "blocked",
    "throttled out",
    "stalled",
    "dead target",
    "no source",
)
#: Those that end only if somebody does something.
ENDLESS = frozenset(
    ("no source", "dead target", "stalled", "throttled out", "blocked", "diverging")
)
_STANDS = (DEAD, STALLED, STARVED, STUCK)


@dataclass(frozen=True, slots=True)
class ReassignmentVerdict:
    """A verdict (one of VERDICTS), its cause, the numbers behind it, and what can be done."""

    verdict: str
    cause: str | None
    evidence: Evidence
    advice: str | None


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict with the finding that it is due to, None if it is due to none alone."""

    verdict: str
    cause: str | None
    finding: Finding | None


def judge(observation: PartitionObservation, findings: Sequence[Finding]) -> Judgement:
    """Judge a movement by its replicas that are needed and aren't in sync, one at least.

    The table in this module's docstring is the rule, from ``dead target`` on.
    """
    copies = [one for one in findings if one.replica in observation.adding]
    stays = [one for one in findings if one.replica not in observation.adding]
    for state, verdict in ((DEAD, "dead target"), (STALLED, "stalled"), (STARVED, "throttled out")):
        for one in copies:
            if one.state == state:
                return Judgement(verdict, one.cause, one)
    hindered = next((one for one in (*stays, *copies) if one.state in _STANDS), None)
    if hindered is not None and all(one.state in (TAIL, STUCK) for one in copies):
        return Judgement("blocked", _cause(observation, hindered), hindered)
    diverging = next((one for one in findings if one.state == DIVERGING), None)
    if diverging is not None:
        return Judgement("diverging", diverging.cause, diverging)
    for state, verdict in ((MOVING, "moving"), (UNKNOWN, "unknown"), (MEASURING, "measuring")):
        found = [one for one in findings if one.state == state]
        if found:
            told = hindered or next((one for one in found if one.cause), found[0])
            return Judgement(verdict, _cause(observation, told), told)
    return Judgement("tail", None, findings[0])


def _cause(observation: PartitionObservation, finding: Finding) -> str | None:
    """Name the cause as it is for a movement: a replica that stays is no destination."""
    if finding.replica in observation.adding or finding.state == UNKNOWN:
        return finding.cause
    if finding.cause in ("destination-broker-down", "destination-broker-fenced"):
        return "retained-replica-down"
    return finding.cause if observation.adding else "removal-blocked"
