"""Exact mode where a follower decides: did it do what it says, and what its rules say?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from caughtup.models.assignment.decision import ClientDecision, Decision
from caughtup.models.assignment.scenario import Scenario
from caughtup.models.assignors.following.follower import GIVEN_UP, Patience, follow
from caughtup.models.assignors.following.recommendation import (
    FollowedRecommendation,
    Objection,
    read_followed,
)
from caughtup.models.decisions.exact.generation import FOLLOWER, ExactResult, in_words
from caughtup.models.decisions.exact.members import compare_members
from caughtup.models.decisions.inputs.application_state import ApplicationState, Outcome
from caughtup.models.decisions.inputs.gathering import GenerationInputs
from caughtup.models.errors import CaughtupError, ScenarioError
from caughtup.models.groups.generation import StreamsGeneration

#: Outcomes of a follower that had no recommendation it could read.
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
_MOST_TOLD = 500


class PublishedRecommendation(NamedTuple):
    """A recommendation as a follower reads it, None if it refuses to.

    ``warm_ups``: those of each process, ids as their text.
    """

    decision_id: str
    warm_ups: Mapping[str, frozenset[str]]
    followed: FollowedRecommendation | None


def read_published(record: Mapping[str, Any], group: str) -> PublishedRecommendation:
    """Read a record of ``caughtup-recommended-assignments`` as a follower of the group does."""
    followed = None
    with suppress(CaughtupError):
        followed = read_followed(record, group)
    return PublishedRecommendation(
        record["decision_id"],
        {process: frozenset(given["warmup"]) for process, given in record["assignment"].items()},
        followed,
    )


def recompute_follower(
    generation: StreamsGeneration,
    inputs: GenerationInputs,
    state: ApplicationState,
    published: Sequence[PublishedRecommendation],
) -> ExactResult:
    """Decide a generation again as the follower in its leader does, and compare.

    Its rules are applied to what it saw, and to the recommendation that it says it followed if
    that is among the ``published``; then what every member was given is compared with what it
    decided. The result's decision is the follower's, its movements are the recommendation's.
    """
    outcome = state.outcome
    found = _compare(generation, inputs, state, published)
    return replace(found, told=f"{outcome.reason}: {outcome.message}"[:_MOST_TOLD])


def _compare(
    generation: StreamsGeneration,
    inputs: GenerationInputs,
    state: ApplicationState,
    published: Sequence[PublishedRecommendation],
) -> ExactResult:
    outcome = state.outcome
    warm_ups: Mapping[str, frozenset[str]] = {}
    if outcome.followed is not None:
        followed = _find(published, outcome.followed)
        if followed is None:
            why = f"it followed recommendation {outcome.followed}, which isn't known here"
            return _result("undetermined", why, _decision(outcome, {}))
        warm_ups = followed.warm_ups
    decision = _decision(outcome, warm_ups)
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
    texts = in_words([one.text for one in differences])
    result = "mismatch" if any(one.certain for one in differences) else "undetermined"
    return _result("undetermined" if inputs.unknown else result, texts, decision)


def _result(result: str, why: str, decision: Decision) -> ExactResult:
    return ExactResult(result, why, decision, FOLLOWER)


def _find(
    published: Sequence[PublishedRecommendation], decision_id: str
) -> PublishedRecommendation | None:
    return next((one for one in reversed(published) if one.decision_id == decision_id), None)


def _newest(
    state: ApplicationState, published: Sequence[PublishedRecommendation]
) -> FollowedRecommendation | Objection:
    """Return what the follower had read, as far as it is known here; else why it says it had none."""
    name = state.outcome.followed
    if state.basis is not None and state.outcome.reason not in _UNREAD:
        name = state.basis.newest
    newest = None if name is None else _find(published, name)
    if newest is not None and newest.followed is not None:
        return newest.followed
    return Objection(state.outcome.reason, state.outcome.message)


def _differs_from_rules(
    state: ApplicationState, scenario: Scenario, newest: FollowedRecommendation | Objection
) -> str:
    """Describe where the follower's decision isn't what its rules give, "" where it is.

    One that doesn't tell how long it had waited is taken at its word that it had waited enough.
    """
    outcome, basis = state.outcome, state.basis
    if basis is None:
        waited = Patience().follow_ups if outcome.reason == GIVEN_UP else 0
        ruled = follow(scenario, newest, waited=waited)
    else:
        ruled = follow(
            scenario,
            newest,
            age_ms=basis.age_ms,
            waited=basis.waited,
            repeated=basis.repeated,
            patience=Patience(basis.follow_up_ms, basis.max_age_ms, basis.follow_ups),
        )
        if ruled.follow_up_ms != outcome.follow_up_ms and ruled.reason == outcome.reason:
            return (
                f"it should ask for a rebalance in {ruled.follow_up_ms} ms, "
                f"but asks in {outcome.follow_up_ms} ms"
            )
    if ruled.reason != outcome.reason:
        return f"by its rules it decides {ruled.reason}, but it decided {outcome.reason}"
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
    """Return what the follower decided; which of its standbys are warm-ups the record tells."""
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
