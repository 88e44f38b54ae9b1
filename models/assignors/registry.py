"""Task assignors by name: each takes a scenario and returns a decision."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from caughtup.models.assignment.decision import Decision
from caughtup.models.assignment.scenario import Scenario
from caughtup.models.assignors.kafka.high_availability.assignor import decide_high_availability
from caughtup.models.assignors.kafka.public_sticky.assignor import decide_public_sticky
from caughtup.models.assignors.kafka.sticky import decide_fallback_prior, decide_sticky
from caughtup.models.assignors.minimal.assignor import decide_minimal_movement
from caughtup.models.errors import ScenarioError

#: Assignors by the names that scenarios use.
ASSIGNORS: Mapping[str, Callable[[Scenario], Decision]] = {
    "high_availability": decide_high_availability,
    "sticky": decide_sticky,
    "fallback_prior": decide_fallback_prior,
    "public_sticky": decide_public_sticky,
    "minimal_movement": decide_minimal_movement,
}


def decide(scenario: Scenario) -> Decision:
    """Return the decision of the assignor that the scenario names.

    Raises ScenarioError ``unsupported``.
    """
    assignor = ASSIGNORS.get(scenario.assignor)
    if assignor is None:
        known = ", ".join(sorted(ASSIGNORS))
        raise ScenarioError(
            "unsupported", f"assignor: {scenario.assignor!r:.80} is not among {known}"
        )
    return assignor(scenario)
