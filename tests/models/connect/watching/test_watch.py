"""What is known of a group from its generations, each in the least group that shows it."""

from __future__ import annotations

from dataclasses import replace

from caughtup.models.connect.generation import ConnectGeneration
from caughtup.models.connect.watching.absences import WINDOW_MS, AbsenceOutcome
from caughtup.models.connect.watching.watch import Watch, follow
from caughtup.models.connect.work import written
from caughtup.models.ids import ConnectorTaskId
from caughtup.models.wire.connect_protocol import NOTHING, ConnectorsAndTasks
from tests.support.connect.playing import AT_MS, Group

D_MS = 300_000
CONNECTORS = {"A": 2, "B": 1}


def settled(group: Group) -> Watch:
    """Let three workers come to rest."""
    group.join("W1")
    watch = step(group, None)
    group.join("W2", "W3")
    watch = step(group, watch)
    return step(group, watch)


def step(group: Group, watch: Watch | None, after_ms: int = 10) -> Watch:
    group.now_ms += after_ms
    generation, _ = group.round()
    return follow(watch, generation, group.connectors)


def names(watch: Watch) -> dict[str, str]:
    """Return to whom goes what nobody has, by workers' names."""
    by_member = {name: worker.client_id for name, worker in watch.generation.workers.items()}
    return {str(item): by_member[name] for item, name in sorted_items(watch.forecast.goes_to)}


def sorted_items(of):
    return sorted(of.items(), key=lambda pair: str(pair[0]))


def told_otherwise(generation: ConnectGeneration) -> ConnectGeneration:
    """Have the last worker told to stop all that it runs."""
    name = list(generation.workers)[-1]
    worker = generation.workers[name]
    assert worker.assignment is not None
    told = replace(worker.assignment, assigned=NOTHING, revoked=worker.state.owned)
    return replace(
        generation, workers={**generation.workers, name: replace(worker, assignment=told)}
    )


def test_who_is_to_get_what_nobody_has_and_when():
    group = Group(CONNECTORS)
    watch = settled(group)
    lost = [str(item) for item in (*group.owned["W2"].connectors, *group.owned["W2"].tasks)]
    group.leave("W2")
    watch = step(group, watch, 1_000)
    left_ms = group.now_ms
    assert written(watch.unassigned) == lost
    assert set(watch.since_ms.values()) == {left_ms}
    assert watch.forecast.at_ms == left_ms + D_MS
    assert set(names(watch)) == set(lost)
    group.join("W2")
    watch = step(group, watch, 100_000)
    assert watch.comparison.result == "match"
    assert watch.forecast.at_ms == left_ms + D_MS
    assert names(watch) == dict.fromkeys(lost, "W2")
    assert set(watch.since_ms.values()) == {left_ms}
    watch = step(group, watch, 200_000)
    assert (watch.comparison.result, written(watch.unassigned)) == ("match", [])
    assert (watch.forecast.at_ms, watch.forecast.goes_to) == (None, {})


def test_what_the_next_round_takes_away_is_foreseen_and_how_uneven_it_is_then():
    group = Group({"A": 3, "B": 3})
    group.join("W1", "W2")
    watch = step(group, None)
    group.leave("W2")
    watch = step(group, watch)
    group.join("W3", "W4")
    watch = step(group, watch, D_MS + 1)
    for _ in range(6):
        if watch.forecast.at_ms is None:
            break
        foreseen = {name: written(work) for name, work in watch.forecast.revokes.items()}
        after = watch.forecast.after
        watch = step(group, watch, max(10, watch.forecast.at_ms - group.now_ms))
        told = {
            name: written(worker.assignment.revoked)
            for name, worker in watch.generation.workers.items()
            if worker.assignment and worker.assignment.revoked
        }
        assert foreseen == told
        assert watch.comparison.result == "match"
    assert after == watch.imbalance
    assert not watch.imbalance.is_uneven
    assert watch.uneven_since_ms is None


def test_a_leader_that_decides_otherwise_is_a_mismatch_and_what_follows_is_judged_anew():
    group = Group(CONNECTORS)
    watch = settled(group)
    group.now_ms += 10
    generation, _ = group.round()
    watch = follow(watch, told_otherwise(generation), CONNECTORS)
    assert watch.comparison.result == "mismatch"
    assert watch.comparison.why.startswith("the leader told w3:8083 to stop ")
    assert watch.counts == {"match": 3, "mismatch": 1}


def test_the_same_is_undetermined_where_the_configuration_or_the_leaders_past_is_not_known():
    group = Group(CONNECTORS)
    watch = settled(group)
    group.now_ms += 10
    generation, _ = group.round()
    unconfigured = follow(watch, told_otherwise(generation), None)
    assert unconfigured.comparison.result == "undetermined"
    assert unconfigured.comparison.why == "the worker cluster's configuration isn't known"
    first = follow(None, told_otherwise(generation), CONNECTORS)
    assert first.comparison.result == "undetermined"
    assert (
        first.comparison.why
        == "caughtup first saw the group after its leader had begun to assign, and does not know what the leader remembers"
    )


def test_what_a_leader_remembers_is_learned_from_what_it_tells():
    """Who begins to watch while a delay runs learns its end, and then who gets the work."""
    group = Group(CONNECTORS, max_delay_ms=60_000)
    watch = settled(group)
    group.leave("W2")
    step(group, watch)
    began = step(group, None, 20_000)
    assert began.comparison.result == "undetermined"
    assert began.forecast.at_ms == AT_MS + 40 + 60_000
    assert written(began.unassigned) != []
    ended = step(group, began, 40_000)
    assert (ended.comparison.result, written(ended.unassigned)) == ("match", [])


def test_without_a_configuration_what_a_group_runs_stands_for_it():
    group = Group(CONNECTORS)
    group.join("W1", "W2", "W3")
    watch = follow(None, group.round()[0], None)
    assert watch.comparison.result == "match"
    assert not watch.configured
    lost = [*map(str, group.owned["W2"].connectors), *map(str, group.owned["W2"].tasks)]
    group.leave("W2")
    group.now_ms += 10
    watch = follow(watch, group.round()[0], None)
    assert watch.comparison.result == "match"
    assert written(watch.unassigned) == lost


def test_a_new_leader_remembers_nothing_and_a_generation_that_was_not_seen_is_allowed_for():
    group = Group(CONNECTORS)
    watch = settled(group)
    group.leave("W1")
    watch = step(group, watch)
    assert (watch.comparison.result, watch.generation.delay_ms) == ("match", 0)
    group.join("W1")
    group.now_ms += 10
    group.round()
    watch = step(group, watch)
    assert watch.comparison.result == "match"


def test_a_leader_that_had_not_read_the_configuration_has_all_join_again():
    group = Group(CONNECTORS)
    watch = settled(group)
    generation, _ = group.round()
    leader = generation.leader
    behind = {
        name: replace(
            worker,
            state=replace(worker.state, config_offset=1 if name == leader else 2),
            assignment=replace(worker.assignment, error=1, assigned=NOTHING, revoked=NOTHING),
        )
        for name, worker in generation.workers.items()
    }
    watch = follow(watch, replace(generation, workers=behind), CONNECTORS)
    assert watch.comparison.result == "match"
    assert watch.forecast.at_ms == generation.as_of_ms
    group.memories[group.led] = watch.comparison.remembered.hypotheses[0].memory
    assert step(group, watch).comparison.result == "match"


def test_a_worker_that_cannot_be_read_leaves_its_generation_undetermined():
    group = Group(CONNECTORS)
    watch = settled(group)
    generation, _ = group.round()
    watch = follow(watch, replace(generation, skipped=("w9: unknown_version: 3",)), CONNECTORS)
    assert watch.comparison.result == "undetermined"
    assert watch.comparison.why == "a worker can't be read: w9: unknown_version: 3"


def test_a_bounce_that_came_back_in_time_is_told_from_one_that_did_not():
    group = Group(CONNECTORS)
    watch = settled(group)
    group.leave("W3")
    watch = step(group, watch)
    (away,) = watch.membership.absences
    assert away.outcome(group.now_ms) is AbsenceOutcome.AWAY
    assert away.outcome(group.now_ms + D_MS) is AbsenceOutcome.GONE
    group.join("W3")
    watch = step(group, watch, D_MS - 1)
    assert watch.membership.absences[0].outcome(group.now_ms) is AbsenceOutcome.IN_TIME
    watch = step(group, watch)
    group.leave("W3")
    watch = step(group, watch)
    watch = step(group, watch, D_MS)
    group.join("W3")
    watch = step(group, watch, 60_000)
    assert watch.membership.absences[-1].outcome(group.now_ms) is AbsenceOutcome.LATE


def test_a_rolling_restart_is_no_storm_and_a_worker_that_comes_and_goes_is():
    group = Group(CONNECTORS)
    watch = settled(group)
    for worker in ("W1", "W2", "W3"):
        group.leave(worker)
        watch = step(group, watch, 1_000)
        group.join(worker)
        watch = step(group, watch, 20_000)
        assert watch.membership.storm(group.now_ms) is None
    for _ in range(2):
        group.leave("W3")
        watch = step(group, watch, 1_000)
        group.join("W3")
        watch = step(group, watch, 1_000)
    storm = watch.membership.storm(group.now_ms)
    assert storm is not None
    assert (storm.cause, storm.culprit, storm.left, storm.joined) == ("worker", "w3:8083", 3, 4)
    assert watch.membership.storm(group.now_ms + WINDOW_MS) is None


def test_imbalance_that_stays_is_told_since_when():
    group = Group(CONNECTORS)
    watch = settled(group)
    generation, _ = group.round()
    heap = ConnectorsAndTasks(("A", "B"), (ConnectorTaskId("A", 0), ConnectorTaskId("A", 1)))
    workers = {}
    for number, (name, worker) in enumerate(generation.workers.items()):
        said = replace(worker.state, assignment=replace(worker.assignment, assigned=heap))
        if number:
            said = replace(said, assignment=None)
        workers[name] = replace(
            worker, state=said, assignment=replace(worker.assignment, assigned=NOTHING)
        )
    uneven = replace(generation, workers=workers)
    watch = follow(watch, uneven, CONNECTORS)
    assert watch.uneven_since_ms == generation.as_of_ms
    later = replace(uneven, generation=uneven.generation + 1, as_of_ms=uneven.as_of_ms + 5)
    assert follow(watch, later, CONNECTORS).uneven_since_ms == generation.as_of_ms


def test_an_eager_group_is_decided_again_without_any_memory():
    group = Group(CONNECTORS)
    group.join("W1", "W2")
    generation, _ = group.round()
    dealt = {
        name: ConnectorsAndTasks((connector,), (ConnectorTaskId("A", task),))
        for name, connector, task in zip(sorted(generation.workers), "AB", (0, 1), strict=True)
    }
    first = min(dealt)
    dealt[first] = ConnectorsAndTasks(("A",), (ConnectorTaskId("A", 0), ConnectorTaskId("B", 0)))
    workers = {
        name: replace(
            worker,
            state=replace(worker.state, version=0, assignment=None),
            assignment=replace(worker.assignment, version=0, assigned=dealt[name], revoked=NOTHING),
        )
        for name, worker in generation.workers.items()
    }
    eager = replace(generation, protocol="default", workers=workers)
    watch = follow(None, eager, CONNECTORS)
    assert (watch.comparison.result, watch.comparison.remembered) == ("match", None)
    assert (written(watch.unassigned), watch.forecast.at_ms) == ([], None)
    other = replace(workers[first], assignment=replace(workers[first].assignment, assigned=NOTHING))
    wrong = follow(None, replace(eager, workers={**workers, first: other}), CONNECTORS)
    assert wrong.comparison.result == "mismatch"
    assert follow(watch, eager, CONNECTORS).comparison.result == "match"
