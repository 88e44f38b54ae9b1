"""The document's six cases, decided as Kafka 4.3.1 does, and where the document tells otherwise."""

from __future__ import annotations

import pytest

from caughtup.demo.story.connect.cases import CASES
from caughtup.models.connect.assign_line import decide_rounds, decisions_json, parse_rounds
from tests.models.connect.seed_cases import story


@pytest.mark.parametrize("case", CASES)
def test_a_case_is_decided_as_kafka_decides_it(case: str) -> None:
    read = parse_rounds(story(case))
    rounds = decisions_json(read, decide_rounds(read))["rounds"]
    settled = rounds[: len(rounds) - len(CASES[case])]
    assert all(not worker["revoked"] for one in settled for worker in one["workers"].values())
    for step, one in zip(CASES[case], rounds[len(settled) :], strict=True):
        after = {name: " ".join(worker["after"]) for name, worker in one["workers"].items()}
        assert after == step.decided.after, (step.number, step.event)
        assert one["delay_ms"] == step.decided.delay_ms, (step.number, step.event)


def test_the_document_differs_from_kafka_in_these_rounds_and_no_others() -> None:
    steps = {step.number: step for steps in CASES.values() for step in steps}
    waits = {
        number: (step.document.delay_ms, step.kafka.delay_ms)
        for number, step in steps.items()
        if step.kafka and step.document.delay_ms != step.kafka.delay_ms
    }
    has = {
        number
        for number, step in steps.items()
        if step.kafka and step.document.after not in (None, step.kafka.after)
    }
    unsaid = {number for number, step in steps.items() if step.document.after is None}
    # docs/design.md lists them.
    assert waits == {"6.3": (150_000, 0), "6.4": (130_000, 0)}
    assert has == {"2.1", "2.2", "3.2", "6.3", "6.4", "6.5"}
    assert unsaid == {"4.3", "5.1"}
