"""Groups whose members join, leave and come back: minimal_movement always gets them balanced."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from caughtup.bench.movement.fewest import fewest_copies
from caughtup.models.assignment.client_state import is_caught_up
from caughtup.models.assignment.decision import Decision
from caughtup.models.assignment.scenario import Client, Scenario, parse_scenario
from caughtup.models.assignors.minimal.assignor import remaining
from caughtup.models.assignors.registry import decide
from caughtup.models.ids import ProcessId, TaskId
from caughtup.models.simulation.rounds import next_scenario, play, spread
from tests.support.sizes import daily

END = 100_000
ENDS = st.sampled_from([0, 50, END, 3 * END])


def described(
    ends: dict[str, int],
    stateless: int,
    tags: tuple[str, ...],
    racks: str,
    copies: tuple[int, int],
    replicas: dict[str, list[int]],
) -> dict[str, Any]:
    """Describe a group without its clients; ``ends`` are those of its stateful tasks' changelogs.

    ``copies``: its warm-ups at a time, and its standbys. Partitions without ``replicas``: on broker 0.
    """
    tasks = (*ends, *(f"2_{n}" for n in range(stateless)))
    everywhere = (f"{kind}-{task[0]}-{task[2:]}" for task in tasks for kind in ("in", "log"))
    return {
        "name": "history",
        "assignor": "minimal_movement",
        "config": {
            "acceptable.recovery.lag": 100,
            "max.warmup.replicas": copies[0],
            "num.standby.replicas": copies[1],
            "rack.aware.assignment.tags": list(tags),
            "rack.aware.assignment.strategy": racks,
        },
        "tasks": {
            task: {
                "stateful": task in ends,
                "source_partitions": [[f"in-{task[0]}", int(task[2:])]],
                "changelog_partitions": [[f"log-{task[0]}", int(task[2:])]],
            }
            for task in tasks
        },
        "brokers": {"0": "a", "1": "b", "2": "c"},
        "replicas": {one: [0] for one in everywhere} | replicas,
        "ends": ends,
    }


@st.composite
def groups(draw: st.DrawFn) -> dict[str, Any]:
    """Describe a group without its clients: tasks, configs, and how its clients are tagged."""
    stateful = [f"{n % 2}_{n // 2}" for n in range(draw(st.integers(0, 14)))]
    stateless = draw(st.integers(0, 5))
    tags = draw(st.sampled_from([(), ("zone",), ("zone", "hall")]))
    racks = draw(st.sampled_from(["none", "none", "min_traffic", "balance_subtopology"]))
    copies = draw(st.integers(1, 4)), draw(st.integers(0, 2))
    replicas = {
        f"{kind}-{task[0]}-{task[2:]}": [draw(st.integers(0, 2))]
        for task in (*stateful, *(f"2_{n}" for n in range(stateless)))
        for kind in ("in", "log")
    }
    ends = {task: draw(ENDS) for task in stateful}
    return described(ends, stateless, tags, racks, copies, replicas)


#: It was called settled with one standby too many, which left; another role was better then.
ONE_TOO_MANY = described(
    {f"0_{n}": end for n, end in enumerate((END, END, 0, 0, 50))}
    | {f"1_{n}": end for n, end in enumerate((50, 0, 0, 0, END))},
    4,
    ("zone", "hall"),
    "min_traffic",
    (3, 2),
    {"in-0-0": [2]},
)
#: Its roles were exchanged once, and later once more.
ANOTHER_EXCHANGE = described(
    {f"0_{n}": end for n, end in enumerate((50, END, 0, 0, 50, 50, 50))}
    | {f"1_{n}": end for n, end in enumerate((0, 0, 0, 50, 50, 0, 0))},
    1,
    (),
    "min_traffic",
    (1, 1),
    {"in-0-2": [2], "in-0-3": [2], "in-1-5": [1], "in-1-6": [1]},
)

#: What befalls a group: who (by its number), whether it keeps its state where it comes back.
EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["join", "leave", "restart", "restart as another"]),
        st.integers(0, 8),
        st.integers(1, 3),
    ),
    max_size=6,
)


def joining(group: dict[str, Any], number: int, threads: int) -> Client:
    """Make a client that has nothing; its zone, hall and rack depend on its number."""
    scenario = {key: value for key, value in group.items() if key != "ends"} | {
        "clients": {
            str(ProcessId.of(number)): {
                "capacity": threads,
                "previous_active": [],
                "previous_standby": [],
                "lags": dict(group["ends"]),
                "tags": {"zone": "xyz"[number % 3], "hall": "pq"[number % 2]},
                "rack": "abc"[number % 3],
            }
        }
    }
    return parse_scenario(scenario).clients[0]


def whole(group: dict[str, Any], clients: dict[ProcessId, Client]) -> Scenario:
    """Make the scenario of these clients."""
    scenario = {key: value for key, value in group.items() if key != "ends"} | {
        "clients": {
            str(client.process_id): {
                "capacity": client.capacity,
                "previous_active": [str(task) for task in client.previous_active],
                "previous_standby": [str(task) for task in client.previous_standby],
                "lags": {str(task): lag for task, lag in client.lags.items()},
                "tags": dict(client.tags),
                "rack": client.rack,
            }
            for client in clients.values()
        }
    }
    return parse_scenario(scenario)


def restarted(client: Client) -> Client:
    """Return a client that stopped and comes back with what was on its disk."""
    had = client.previous_active | client.previous_standby
    return replace(
        client,
        previous_active=frozenset(),
        previous_standby=frozenset(task for task in had if task in client.lags),
        lags={task: max(lag, 0) for task, lag in client.lags.items()},
    )


def most_rounds(scenario: Scenario) -> int:
    """Bound the rounds: every copy may have to be built as an extra one, and four more."""
    copies = len(scenario.stateful) * (
        1 + min(scenario.configs.num_standby_replicas, len(scenario.clients) - 1)
    )
    return copies // scenario.configs.max_warmup_replicas + 4


def assert_valid(scenario: Scenario, decision: Decision) -> None:
    """Every task runs once, copies are on different clients, no more of them than allowed."""
    configs = scenario.configs
    given = decision.clients
    assert sorted(given) == [client.process_id for client in scenario.clients]
    actives = sorted(task for one in given.values() for task in one.active)
    assert actives == sorted((*scenario.stateful, *scenario.stateless))
    warm_ups = copies = 0
    for one in given.values():
        assert not set(one.active) & set(one.standby)
        assert set(one.warmup) <= set(one.standby) <= set(scenario.stateful)
        copies += len(one.standby)
        warm_ups += len(one.warmup)
    standbys = min(configs.num_standby_replicas, len(given) - 1)
    assert warm_ups <= configs.max_warmup_replicas
    assert copies <= len(scenario.stateful) * standbys + configs.max_warmup_replicas
    for task in scenario.stateful:
        assert sum(task in one.standby for one in given.values()) >= standbys
    assert_no_cold_hand_over(scenario, decision)


def assert_no_cold_hand_over(scenario: Scenario, decision: Decision) -> None:
    """Who isn't caught up runs a task only where nobody is, and nobody lags less."""
    acceptable = scenario.configs.acceptable_recovery_lag
    for client in scenario.clients:
        for task in decision.clients[client.process_id].active:
            lag = client.lags.get(task, 0)
            if not is_caught_up(lag, acceptable):
                assert lag == min(one.lags[task] for one in scenario.clients)


@settings(max_examples=daily(60, 150), deadline=None, print_blob=True)
@given(groups(), st.lists(st.integers(1, 3), min_size=1, max_size=5), EVENTS, st.booleans())
@example(
    ONE_TOO_MANY,
    [2, 1, 2, 2, 1],
    [("leave", 3, 1), ("restart as another", 0, 2), ("restart as another", 0, 2)],
    False,
)
@example(
    ANOTHER_EXCHANGE, [1], [("restart as another", 0, 2), ("join", 0, 2), ("join", 0, 2)], False
)
def test_a_group_gets_balanced_after_whatever_befalls_it(
    group: dict[str, Any], first: list[int], events: list[tuple[str, int, int]], patient: bool
) -> None:
    """Between events it has a round, or, if ``patient``, as many as it wants."""
    ends = {TaskId.parse(task): end for task, end in group["ends"].items()}
    clients = {ProcessId.of(n): joining(group, n, threads) for n, threads in enumerate(first)}
    fresh = len(first)
    for kind, number, threads in [("start", 0, 0), *events, ("end", 0, 0)]:
        member = list(clients)[number % len(clients)]
        if kind == "join" or (kind == "leave" and len(clients) == 1):
            clients[ProcessId.of(fresh)] = joining(group, fresh, threads)
            fresh += 1
        elif kind == "leave":
            del clients[member]
        elif kind == "restart":
            clients[member] = restarted(clients[member])
        elif kind == "restart as another":
            del clients[member]
            clients[ProcessId.of(fresh)] = joining(group, fresh, threads)
            fresh += 1
        scenario = whole(group, clients)
        for played in range(1, most_rounds(scenario) + 1):
            decision = decide(scenario)
            assert_valid(scenario, decision)
            scenario = next_scenario(scenario, decision, ends)
            if not decision.probing_rebalance_needed:
                break
            assert played < most_rounds(scenario), "it goes on for ever"
            if not patient and kind != "end":
                break
        clients = {client.process_id: client for client in scenario.clients}
    again = decide(scenario)
    assert again == decision
    assert not again.movements
    if scenario.stateful:
        assert spread(scenario, standbys=False) <= 1
    if not scenario.configs.rack_aware_assignment_tags:
        assert fewest_copies(scenario) == 0


@settings(max_examples=daily(20, 60), deadline=None, print_blob=True)
@given(groups(), st.lists(st.integers(1, 3), min_size=2, max_size=6), st.integers(0, 2))
def test_what_the_first_plan_has_is_built_and_hardly_anything_else(
    group: dict[str, Any], threads: list[int], joiners: int
) -> None:
    clients = {ProcessId.of(n): joining(group, n, count) for n, count in enumerate(threads)}
    balanced = play(whole(group, clients))
    grown = {client.process_id: client for client in balanced.scenario.clients}
    for n in range(joiners):
        grown[ProcessId.of(90 + n)] = joining(group, 90 + n, 1)
    scenario = whole(group, grown)
    planned = sum(copy.new for copy in remaining(scenario))
    outcome = play(scenario)
    assert outcome.converged
    if not scenario.configs.rack_aware_assignment_tags:
        assert outcome.copies_built <= max(1.1 * planned, planned + 1)
    assert outcome.wasted_warm_ups == 0
    assert outcome.avoidable_cold_hand_overs == 0
