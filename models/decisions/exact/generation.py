"""Exact mode: decide again what the leader decided, and compare with what it assigned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from caughtup.models.assignment.decision import Decision
from caughtup.models.assignors.registry import decide
from caughtup.models.decisions.exact.members import compare_members
from caughtup.models.decisions.inputs.gathering import GenerationInputs
from caughtup.models.errors import ScenarioError
from caughtup.models.groups.generation import StreamsGeneration

#: Kafka's assignor unless another is configured, as scenarios call it and as Kafka does.
KAFKAS = "high_availability"
ASSIGNOR = "HighAvailabilityTaskAssignor"
#: What followers call their assignor.
FOLLOWER = "FollowingTaskAssignor"
#: Doubts or differences that are named; of more it is told how many.
_NAMED = 20
#: What a recomputation can find.
RESULTS = ("match", "mismatch", "undetermined")


@dataclass(frozen=True, slots=True)
class ExactResult:
    """What the recomputation found: ``match``, ``mismatch`` or ``undetermined``, and why.

    ``told`` is what a follower says that it did and why, "" for others.
    """

    result: str
    why: str
    decision: Decision | None
    assignor: str = ASSIGNOR
    told: str = ""

    @property
    def plans(self) -> bool:
        """Return whether the decision's movements are what the leader has planned.

        A follower's plan is the recommendation that it follows.
        """
        return self.result == "match" and self.assignor == ASSIGNOR


def recompute(generation: StreamsGeneration, inputs: GenerationInputs) -> ExactResult:
    """Decide a generation again as HighAvailabilityTaskAssignor does, and compare.

    What every member was given is compared with what the decision means for it. A difference is a
    mismatch only if every input is known; otherwise it is undetermined, and ``why`` names what
    wasn't known. An agreement is a match either way.
    """
    if not generation.clients:
        return ExactResult("undetermined", "no member could be read", None)
    if generation.follows:
        why = "its leader is a follower, and did not tell what it decided from"
        return ExactResult("undetermined", why, None, FOLLOWER)
    try:
        scenario = replace(inputs.scenario.expanded(), assignor=KAFKAS)
        decision = decide(scenario)
    except ScenarioError as error:
        return ExactResult("undetermined", error.message, None)
    failed = [m for m in generation.members() if m.assignment is None or m.assignment.error_code]
    if failed:
        why = f"the leader gave {failed[0].client_id} no assignment but an error"
        return ExactResult("undetermined", why, decision)
    try:
        differences = compare_members(
            generation, scenario, inputs.scenario.tasks, decision, inputs.ends
        )
    except ScenarioError as error:
        return ExactResult("undetermined", error.message, decision)
    if not differences:
        return ExactResult("match", "", decision)
    doubts = [*inputs.unknown]
    if inputs.assumed:
        doubts.append("configs assumed at Kafka's defaults: " + ", ".join(inputs.assumed))
    doubts += [f"inferred: {line}" for line in inputs.inferred]
    if doubts:
        return ExactResult("undetermined", in_words(doubts), decision)
    texts = in_words([one.text for one in differences])
    if not any(one.certain for one in differences):
        why = f"between threads, where lags aren't known exactly: {texts}"
        return ExactResult("undetermined", why, decision)
    return ExactResult("mismatch", texts, decision)


def in_words(texts: Sequence[str]) -> str:
    """Join what is to be said, or the first of it where a large group has much to say."""
    more = len(texts) - _NAMED
    return "; ".join([*texts[:_NAMED], *([f"and {more:,} more"] if more > 0 else [])])
