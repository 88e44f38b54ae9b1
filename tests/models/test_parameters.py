"""What the operator told of an application, and Kafka's defaults for what they didn't."""

from __future__ import annotations

import pytest

from caughtup.models.parameters import DEFAULTS, MINIMUMS, STRATEGY, TAGS, ApplicationParameters


def test_a_config_that_was_given_wins_over_kafkas_default() -> None:
    parameters = ApplicationParameters(config={"max.warmup.replicas": 8})
    assert parameters.value("max.warmup.replicas") == 8
    assert parameters.value("acceptable.recovery.lag") == 10_000


def test_zero_is_given_and_not_missing() -> None:
    parameters = ApplicationParameters(config={"acceptable.recovery.lag": 0})
    assert parameters.value("acceptable.recovery.lag") == 0
    assert "acceptable.recovery.lag" not in parameters.assumed()


def test_what_nobody_gave_is_assumed_and_named_in_order() -> None:
    assert ApplicationParameters().assumed() == tuple(sorted(DEFAULTS))
    assert ApplicationParameters(config=dict(DEFAULTS)).assumed() == ()


def test_configs_of_tags_and_racks_are_assumed_only_where_clients_have_them() -> None:
    reported = ApplicationParameters(config=dict(DEFAULTS))
    assert reported.assumed(tagged=True, racked=True) == (STRATEGY, TAGS)
    assert ApplicationParameters(config=dict(DEFAULTS), tags=()).assumed(tagged=True) == ()


def test_a_config_that_does_not_decide_assignments_is_unknown() -> None:
    with pytest.raises(KeyError):
        ApplicationParameters().value("num.stream.threads")


def test_every_default_is_one_that_kafka_accepts() -> None:
    assert MINIMUMS.keys() == DEFAULTS.keys()
    assert all(DEFAULTS[name] >= MINIMUMS[name] for name in DEFAULTS)
