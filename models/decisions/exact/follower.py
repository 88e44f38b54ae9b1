"""Exact mode for a follower: its decision compared with its rules and with the assignment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from caughtup.models.assignment.decision import ClientDecision, Decision
from caughtup.models.assignment.scenario import Scenario
from caughtup.models.assignors.following.follower import GIVEN_UP, Patience, follow
from caughtup.models.assignors.following.recommendation import (
    FollowedRecommendation,
    Objection,
    read_followed,
)
from caughtup.models.decisions.exact.comparison import (
    FOLLOWER,
    ExactResult,
    compare_members,
    compared,
    listed,
)
from caughtup.models.decisions.inputs.application_state import ApplicationState
from caughtup.models.decisions.inputs.gathering import GenerationInputs
from caughtup.models.errors import CaughtupError, ScenarioError
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.records.fields import changed, json_values, or_none
from caughtup.models.records.recommendations import RecommendationRecord, Result

#: Outcomes of a follower that had no readable recommendation.
_UNREAD = frozenset(
    {
        "reading",
        "reader_failed",
        "no_recommendation",
        "malformed",
        "not_signed",
        "bad_signature",
        "no_signing_key",
    }
)
_MOST_CHARACTERS = 500


class PublishedRecommendation(NamedTuple):
    """A recommendation as a follower reads it; ``followed`` is None if it refuses it.

    ``warm_ups``: the warm-ups of each process, ids as text.
    """

    decision_id: str
    warm_ups: Mapping[str, frozenset[str]]
    followed: FollowedRecommendation | None


def read_published(record: RecommendationRecord, group: str) -> PublishedRecommendation:
    """Return a recommendation as a follower of the group reads it."""
    followed = None
    with suppress(CaughtupError):
        followed = read_followed(json_values(record), group)
    return PublishedRecommendation(
        record.decision_id,
        {process: frozenset(given.warmup) for process, given in record.assignment.items()},
        followed,
    )


def recompute_follower(
    generation: StreamsGeneration,
    inputs: GenerationInputs,
    state: ApplicationState,
    published: Sequence[PublishedRecommendation],
) -> ExactResult:
    """Return the comparison of a follower's decision with its rules and with the assignment.

    The rules are applied to the state that it published, and to the recommendation that it says it
    followed, if that is among ``published``. Then every member's assignment is compared with the
    follower's decision, which is the result's; its movements are the recommendation's.
    """
    outcome = state.outcome
    found = _compare(generation, inputs, state, published)
    told = f"{outcome.reason}: {or_none(outcome.message) or ''}"[:_MOST_CHARACTERS]
    return found._replace(leader=changed(found.leader, told=told))


def _compare(
    generation: StreamsGeneration,
    inputs: GenerationInputs,
    state: ApplicationState,
    published: Sequence[PublishedRecommendation],
) -> ExactResult:
    outcome = state.outcome
    warm_ups: Mapping[str, frozenset[str]] = {}
    followed_id = or_none(outcome.followed)
    if followed_id is not None:
        followed = _find(published, followed_id)
        if followed is None:
            why = f"it followed recommendation {followed_id}, which caughtup does not know"
            return _result("undetermined", why, _decision(state, {}))
        warm_ups = followed.warm_ups
    decision = _decision(state, warm_ups)
    scenario = state.scenario.expanded()
    differs = _differs_from_rules(state, scenario, _newest(state, published))
    if differs:
        return _result("mismatch", differs, decision)
    try:
        differences = compare_members(
            generation,
            scenario,
            inputs.scenario.tasks,
            decision,
            inputs.ends,
            from_hash_map=True,
        )
    except ScenarioError as error:
        return _result("undetermined", error.message, decision)
    if not differences:
        return _result("match", "", decision)
    texts = listed([one.text for one in differences])
    result: Result = "mismatch" if any(one.certain for one in differences) else "undetermined"
    return _result("undetermined" if inputs.unknown else result, texts, decision)


def _result(result: Result, why: str, decision: Decision) -> ExactResult:
    return ExactResult(compared(result, why, FOLLOWER), decision)


def _find(
    published: Sequence[PublishedRecommendation], decision_id: str
) -> PublishedRecommendation | None:
    return next((one for one in reversed(published) if one.decision_id == decision_id), None)


def _newest(
    state: ApplicationState, published: Sequence[PublishedRecommendation]
) -> FollowedRecommendation | Objection:
    """Return the recommendation that the follower had read, else its reason for having none."""
    name = or_none(state.outcome.followed)
    if state.follower is not None and state.outcome.reason not in _UNREAD:
        name = or_none(state.follower.newest)
    newest = None if name is None else _find(published, name)
    if newest is not None and newest.followed is not None:
        return newest.followed
    return Objection(state.outcome.reason, or_none(state.outcome.message) or "")


def _differs_from_rules(
    state: ApplicationState, scenario: Scenario, newest: FollowedRecommendation | Objection
) -> str:
    """Return where the follower's decision differs from its rules, "" if it doesn't.

    If it doesn't publish how long it had waited, its outcome ``given_up`` is taken as true.
    """
    outcome, basis = state.outcome, state.follower
    follow_up_ms = or_none(outcome.follow_up_ms)
    if basis is None:
        waited = Patience().follow_ups if outcome.reason == GIVEN_UP else 0
        ruled = follow(scenario, newest, waited=waited)
    else:
        ruled = follow(
            scenario,
            newest,
            age_ms=or_none(basis.age_ms) or 0,
            waited=basis.waited,
            repeated=or_none(basis.repeated) or 0,
            patience=Patience(basis.follow_up_ms, basis.max_age_ms, basis.follow_ups),
        )
        if ruled.follow_up_ms != follow_up_ms and ruled.reason == outcome.reason:
            return (
                f"it should ask for a rebalance in {ruled.follow_up_ms} ms, "
                f"but asks in {follow_up_ms} ms"
            )
    if ruled.reason != outcome.reason:
        return f"its rules lead to {ruled.reason}, but it decided {outcome.reason}"
    for process in sorted(ruled.active):
        for role, should, has in (
            ("active", frozenset(ruled.active[process]), state.active.get(process)),
            ("standby", frozenset(ruled.standby[process]), state.standby.get(process)),
        ):
            if should != has:
                tasks = ", ".join(str(task) for task in sorted(should ^ (has or frozenset())))
                return f"process {process} should have other tasks as {role}: {tasks}"
    return ""


def _decision(state: ApplicationState, warm_ups: Mapping[str, frozenset[str]]) -> Decision:
    """Return the follower's decision; the recommendation shows which standbys are warm-ups."""
    clients = {}
    for process, active in sorted(state.active.items()):
        standby = state.standby[process]
        warming = warm_ups.get(str(process), frozenset())
        clients[process] = ClientDecision(
            active=tuple(sorted(active)),
            standby=tuple(sorted(standby)),
            warmup=tuple(task for task in sorted(standby) if str(task) in warming),
            placed=tuple(sorted(active | standby)),
        )
    return Decision(or_none(state.outcome.follow_up_ms) is not None, clients, explain=tuple)
