"""What is known of an application's configs, as it is said, and what nothing is learned from."""

from __future__ import annotations

from dataclasses import replace

import pytest

from caughtup.models.decisions.inputs.gathering import gather_inputs
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.histories.end_offset_table import EndOffsetTable
from caughtup.models.learning.contradiction import (
    ALL_NAMES,
    ASSIGNOR,
    changes_in_words,
    doubtful_configs,
    values_in_words,
)
from caughtup.models.learning.learned import (
    Learned,
    learn,
    likely_releases,
    tag_keys,
    under_releases,
)
from caughtup.models.learning.probing_interval import PROBING, probing_interval, whole_minutes
from caughtup.models.learning.provenance import chosen, known_configs
from caughtup.models.learning.ranges import (
    LAG,
    STANDBYS,
    WARM_UPS,
    Algorithm,
    ConfigRange,
    Hypotheses,
    IntSpan,
    joined,
    spans_of,
)
from caughtup.models.learning.told import UNTOLD, ToldConfigs, possible_hypotheses
from caughtup.models.parameters import TAGS, ApplicationParameters
from caughtup.models.records.fields import ABSENT
from caughtup.models.records.recommendations import KnownConfigRecord
from tests.models.learning.applications import START_MS, Application, Played
from tests.models.learning.playing import steps
from tests.models.learning.truths import Truth

AVAILABLE = Algorithm("high_availability")


def an_application(truth: Truth | None = None) -> Application:
    app = Application("unit 3", doubts=0, failures=0)
    app.truth = truth or Truth(standbys=1)
    return app


def learned_of(app: Application, told: ToldConfigs = UNTOLD, generations: int = 12) -> Learned:
    *_, last = steps(app, Learned(told), generations)
    return last.after


def configs(learned: Learned) -> dict[str, KnownConfigRecord]:
    return {one.name: one for one in known_configs(learned)}


def everything(generation: StreamsGeneration) -> Hypotheses:
    """Return all that a generation's leader may have been configured with."""
    releases = likely_releases(generation)
    return joined(
        under_releases(possible_hypotheses(UNTOLD, tag_keys(generation)), releases, releases)
    )


def texts(hypotheses: Hypotheses) -> list[str]:
    return [values_in_words(name, hypotheses) for name in ALL_NAMES]


def with_members(played: Played, **fields: object) -> StreamsGeneration:
    """Return a generation whose first process's members say something else."""
    generation = played.generation
    process, client = next(iter(generation.clients.items()))
    members = tuple(replace(member, **fields) for member in client.members)  # type: ignore[arg-type]
    clients = generation.clients | {process: replace(client, members=members)}
    return replace(generation, clients=clients)


def test_nothing_is_known_of_an_application_that_nobody_saw() -> None:
    known = configs(Learned())
    assert {one.provenance for one in known.values()} == {"assumed"}
    assert [known[name].value for name in (STANDBYS, LAG, PROBING)] == [0, 10_000, 600_000]
    assert known[WARM_UPS].value == 2
    assert known[WARM_UPS].as_if_default is True
    assert known[LAG].source == "assumed, as if by default"
    assert known[LAG].values == "0 or more"


def test_what_was_learned_is_told_from_what_was_told() -> None:
    known = configs(learned_of(an_application(Truth(standbys=1, lag=10)), ToldConfigs({LAG: 10})))
    assert (known[LAG].provenance, known[LAG].values, known[LAG].would_tell) == (
        "told",
        "10",
        ABSENT,
    )
    assert (known[STANDBYS].provenance, known[STANDBYS].value) == ("learned", 1)
    assert known[STANDBYS].generations == 12
    assert known[PROBING].provenance == "read"


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"assignment": None}, "an error instead of an assignment"),
        ({"client_tags": {"hall": "a"}}, "a deployment is in progress"),
    ],
)
def test_what_no_leader_of_one_mind_decided_teaches_nothing(
    fields: dict[str, object], why: str
) -> None:
    app = an_application()
    learned = learned_of(app)
    odd = app.rebalance()
    while len(odd.generation.clients) < 2:
        app.live()
        odd = app.rebalance()
    after, verdict = learn(learned, with_members(odd, **fields), odd.inputs, odd.seen_ms)
    assert (after, verdict.result) == (learned, "undetermined")
    assert why in verdict.why


def test_more_client_tags_than_can_be_tried_are_to_be_told() -> None:
    app = an_application()
    for process in app.processes:
        process.tags = dict.fromkeys("abcde", "x")
    one = app.rebalance()
    after, verdict = learn(Learned(), one.generation, one.inputs, one.seen_ms)
    assert after == Learned()
    assert verdict.why == f"there are more than 4 client tags: set {TAGS} in the settings"
    told = Learned(ToldConfigs({}, ("a", "b")))
    after, verdict = learn(told, one.generation, one.inputs, one.seen_ms)
    assert verdict.result == "match"


def test_a_follower_and_nobody_teach_nothing() -> None:
    app = an_application()
    learned, one = learned_of(app), app.rebalance()
    for odd in (replace(one.generation, follows=True), replace(one.generation, clients={})):
        after, verdict = learn(learned, odd, one.inputs, one.seen_ms)
        assert (after, verdict.result) == (learned, "undetermined")


def test_a_member_that_cant_be_read_rules_nothing_out() -> None:
    app = an_application(Truth(standbys=2, lag=0))
    learned, one = Learned(), app.rebalance()
    odd = replace(one.generation, skipped=("m: bad bytes",))
    inputs = gather_inputs(odd, app.parameters, EndOffsetTable(), {}, one.seen_ms)
    assert inputs.unknown
    after, verdict = learn(learned, odd, inputs, one.seen_ms)
    assert after.hypotheses == everything(odd)
    assert verdict.narrowed == ()


def test_unknown_end_offsets_rule_nothing_out() -> None:
    app = an_application(Truth(standbys=1, lag=0, warm_ups=1))
    for played in app.play(12):
        inputs = gather_inputs(
            played.generation, app.parameters, EndOffsetTable(), {}, played.seen_ms
        )
        after, verdict = learn(Learned(), played.generation, inputs, played.seen_ms)
        assert texts(after.hypotheses or ()) == texts(everything(played.generation))
        assert verdict.result in ("match", "undetermined")


def test_a_wrong_inference_of_changelogs_is_doubted_before_configs_are() -> None:
    app = an_application(Truth(standbys=1))
    seen = Learned(ToldConfigs({STANDBYS: 3}, (), "high_availability"))
    app._join()
    played = app.rebalance()
    _, verdict = learn(seen, played.generation, played.inputs, played.seen_ms)
    assert (verdict.result, verdict.doubted) == ("mismatch", (STANDBYS,))
    inputs = replace(played.inputs, inferred=("orders-x-changelog belongs to subtopology 0",))
    after, verdict = learn(seen, played.generation, inputs, played.seen_ms)
    assert verdict.result == "undetermined"
    assert verdict.why == "inferred: orders-x-changelog belongs to subtopology 0"
    assert after.suspected == ()


def test_a_change_is_said_with_what_it_was_and_since_when() -> None:
    before, now = Truth(standbys=0, lag=100_000), Truth(standbys=1, lag=100_000)
    app = an_application(before)
    found = list(steps(app, generations=30, change=lambda n: before if n < 10 else now))
    doubted = [step for step in found if step.verdict.doubted]
    assert doubted[0].verdict.doubted == (STANDBYS,)
    since = doubted[0].played.generation.generation
    assert doubted[0].verdict.why.startswith(f"from generation {since} on: {STANDBYS} was 0, now 1")
    assert found[-1].after.since == since
    assert found[-1].after.suspected == ()
    assert configs(found[-1].after)[STANDBYS].value == 1


def test_one_odd_generation_changes_nothing_for_good() -> None:
    truth = Truth(standbys=1, lag=100_000)
    odd = replace(truth, standbys=0)
    app = an_application(truth)
    found = list(steps(app, generations=30, change=lambda n: odd if n == 10 else truth))
    assert found[10].verdict.doubted
    assert found[10].after.hypotheses == found[10].before.hypotheses
    assert found[10].after.suspected
    assert found[-1].after.suspected == ()
    assert found[-1].after.since == found[0].after.since


def test_which_config_changed_is_the_one_that_does_alone() -> None:
    before = (ConfigRange(AVAILABLE, IntSpan(1, 1), IntSpan(2, 2), IntSpan(0, 500)),)
    now = (ConfigRange(AVAILABLE, IntSpan(1, 1), IntSpan(1, 8), IntSpan(501, 900)),)
    assert doubtful_configs(before, now) == (LAG,)
    assert changes_in_words((LAG,), before, now) == f"{LAG} was 0 to 500, now 501 to 900"
    both = (ConfigRange(AVAILABLE, IntSpan(0, 0), IntSpan(1, 8), IntSpan(501, 900)),)
    assert doubtful_configs(before, both) == (STANDBYS, LAG)
    other = (ConfigRange(Algorithm("sticky")),)
    assert doubtful_configs(before, other) == (ASSIGNOR,)
    tagged = (ConfigRange(Algorithm("high_availability", ("zone",))),)
    assert doubtful_configs(before, tagged) == (TAGS,)


def test_neighbouring_ranges_are_one() -> None:
    parts = [
        ConfigRange(AVAILABLE, lag=IntSpan(0, 9)),
        ConfigRange(AVAILABLE, lag=IntSpan(10, 20), warm_ups=IntSpan(1, 3)),
        ConfigRange(AVAILABLE, lag=IntSpan(10, 20), warm_ups=IntSpan(4, (1 << 31) - 1)),
        ConfigRange(AVAILABLE, lag=IntSpan(30, 40)),
    ]
    assert spans_of(joined(parts), LAG) == (IntSpan(0, 20), IntSpan(30, 40))
    assert len(joined(parts)) == 2


def test_the_choice_is_nearest_to_kafkas_defaults() -> None:
    left = (
        ConfigRange(Algorithm("sticky")),
        ConfigRange(AVAILABLE, IntSpan(1, 1), IntSpan(3, 9), IntSpan(0, 500)),
        ConfigRange(AVAILABLE, IntSpan(2, 2), IntSpan(1, 9)),
    )
    assert chosen(left) == ConfigRange(AVAILABLE, IntSpan(1, 1), IntSpan(2, 2), IntSpan(500, 500))
    assert chosen(left[:2]).warm_ups == IntSpan(3, 3)  # the fewest, where the default is ruled out
    assert chosen(left, standbys=2).standbys == IntSpan(2, 2)
    assert chosen(left, standbys=7).standbys == IntSpan(2, 2)  # what is ruled out stays so


def test_settings_are_hypotheses_of_which_there_is_one() -> None:
    parameters = ApplicationParameters({STANDBYS: 1, WARM_UPS: 2, LAG: 5}, tags=())
    told = replace(ToldConfigs.of(parameters), assignor="high_availability")
    assert possible_hypotheses(told, ("zone",)) == (
        ConfigRange(AVAILABLE, IntSpan(1, 1), IntSpan(2, 2), IntSpan(5, 5)),
    )


def due_at(after_ms: int) -> StreamsGeneration:
    """Return a generation whose next rebalance is due so long after its group's state changed."""
    one = an_application().rebalance()
    (process, client), *_ = one.generation.clients.items()
    members = tuple(
        replace(m, assignment=replace(m.assignment, next_rebalance_ms=START_MS + after_ms))
        for m in client.members
        if m.assignment
    )
    return replace(
        one.generation,
        as_of_ms=START_MS,
        clients={process: replace(client, members=members)},
    )


def test_the_probing_interval_lies_between_what_the_times_allow() -> None:
    generation = due_at(601_000)
    found = probing_interval(None, generation, START_MS + 3_000)
    assert found == IntSpan(597_000, 602_000)
    assert whole_minutes(found) == 600_000
    late = probing_interval(found, generation, START_MS + 90_000)
    assert late == found
    assert whole_minutes(IntSpan(500_000, 602_000)) is None
    assert whole_minutes(IntSpan(601_000, 602_000)) is None


def test_another_probing_interval_is_another_one() -> None:
    known = IntSpan(119_000, 121_000)
    assert probing_interval(known, due_at(601_000), START_MS) == IntSpan(600_000, 602_000)
    assert probing_interval(known, due_at(0), START_MS) == known, "a leader's clock is far behind"
