"""Exact mode where a follower decides: did it do what it says, and what its rules say?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from caughtup.models.application_state import ApplicationState, Outcome
from caughtup.models.assignors.decision import ClientDecision, Decision
from caughtup.models.assignors.followed_recommendation import FollowedRecommendation, read_followed
from caughtup.models.assignors.follower import FOLLOWED, GIVEN_UP, Objection, Patience, follow
from caughtup.models.assignors.scenario import Scenario
from caughtup.models.errors import CaughtupError, ScenarioError
from caughtup.models.exact import FOLLOWER, ExactResult
from caughtup.models.exact_members import compare_members
from caughtup.models.groups import StreamsGeneration
from caughtup.models.inputs import GenerationInputs

_PATIENCE = Patience()


def recompute_follower(
    generation: StreamsGeneration,
    inputs: GenerationInputs,
    told: ApplicationState,
    published: Sequence[Mapping[str, Any]],
) -> ExactResult:
    """Decide a generation again as the follower in its leader does, and compare.

    Its rules are applied to what it saw, and to the recommendation that it says it followed if
    that is among the ``published``; then what every member was given is compared with what it
    decided. The result's decision is the follower's, its movements are the recommendation's.
    """
    outcome, scenario = told.outcome, told.scenario
    newest: FollowedRecommendation | Objection
    newest, warm_ups = Objection(outcome.reason, outcome.message), {}
    if outcome.followed is not None:
        record = _find(published, outcome.followed)
        if record is None:
            why = f"it followed recommendation {outcome.followed}, which isn't known here"
            return _result("undetermined", why, _decision(outcome, {}))
        try:
            newest = read_followed(record, generation.group)
        except CaughtupError as error:
            return _result("undetermined", error.message, _decision(outcome, {}))
        warm_ups = {
            process: frozenset(given["warmup"]) for process, given in record["assignment"].items()
        }
    decision = _decision(outcome, warm_ups)
    differs = _differs_from_rules(scenario, outcome, newest)
    if differs:
        return _result("mismatch", differs, decision)
    try:
        differences = compare_members(
            generation,
            scenario,
            inputs.scenario["tasks"],
            decision,
            inputs.ends,
            from_hash_map=True,
        )
    except ScenarioError as error:
        return _result("undetermined", error.message, decision)
    if not differences:
        return _result("match", "", decision)
    texts = "; ".join(one.text for one in differences)
    result = "mismatch" if any(one.certain for one in differences) else "undetermined"
    return _result("undetermined" if inputs.unknown else result, texts, decision)


def _result(result: str, why: str, decision: Decision) -> ExactResult:
    return ExactResult(result, why, decision, FOLLOWER)


def _find(published: Sequence[Mapping[str, Any]], decision_id: str) -> Mapping[str, Any] | None:
    found = (record for record in reversed(published) if record.get("decision_id") == decision_id)
    return next(found, None)


def _differs_from_rules(
    scenario: Scenario, outcome: Outcome, newest: FollowedRecommendation | Objection
) -> str:
    """Say where the follower's decision isn't what its rules give, "" where it is.

    How long it had waited, and how old the recommendation was for it, only it knows; so whether
    it was right to give up isn't asked.
    """
    waited = _PATIENCE.follow_ups if outcome.reason == GIVEN_UP else 0
    ruled = follow(scenario, newest, waited=waited)
    if outcome.reason == FOLLOWED and ruled.reason != FOLLOWED:
        return f"it followed a recommendation that doesn't hold: {ruled.reason}"
    for process in sorted(ruled.active):
        for role, should, has in (
            ("active", frozenset(ruled.active[process]), outcome.active.get(process)),
            ("standby", frozenset(ruled.standby[process]), outcome.standby.get(process)),
        ):
            if should != has:
                tasks = ", ".join(str(task) for task in sorted(should ^ (has or frozenset())))
                return f"process {process} should have other tasks as {role}: {tasks}"
    return ""


def _decision(outcome: Outcome, warm_ups: Mapping[str, frozenset[str]]) -> Decision:
    """Give what the follower decided; which of its standbys are warm-ups the record tells."""
    clients = {}
    for process, active in sorted(outcome.active.items()):
        standby = outcome.standby[process]
        warming = warm_ups.get(str(process), frozenset())
        clients[process] = ClientDecision(
            active=tuple(sorted(active)),
            standby=tuple(sorted(standby)),
            warmup=tuple(task for task in sorted(standby) if str(task) in warming),
            placed=tuple(sorted(active | standby)),
        )
    return Decision(outcome.follow_up_ms is not None, clients, explain=tuple)
