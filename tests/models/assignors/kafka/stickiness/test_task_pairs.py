"""Which tasks have met: the same as when every pair is written down."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.assignment.client_state import ClientState
from caughtup.models.assignment.scenario import Client
from caughtup.models.assignors.kafka.stickiness import TaskPairs
from caughtup.models.ids import TaskId
from tests.support.groups.streams import process
from tests.support.sizes import daily

CLIENTS = 4
PLACES = st.integers(0, CLIENTS - 1)


@settings(max_examples=daily(80, 200), print_blob=True)
@given(st.lists(st.tuples(PLACES, PLACES), min_size=1, max_size=12), st.data())
def test_tasks_are_companions_once_they_were_placed_on_one_client(
    deals: list[tuple[int, int]], data: st.DataObject
) -> None:
    """Each task was dealt to one client, and may have been exchanged to another since."""
    tasks = [TaskId(0, number) for number in range(len(deals))]
    clients = [
        ClientState(Client(process(n), 1, frozenset(), frozenset(), {})) for n in range(CLIENTS)
    ]
    dealt: list[set[TaskId]] = [set() for _ in clients]
    for task, (first, now) in zip(tasks, deals, strict=True):
        dealt[first].add(task)
        clients[now].active.add(task)
    pairs = TaskPairs(dealt, clients)
    met = {(one, other) for group in dealt for one in group for other in group}

    for task in data.draw(st.lists(st.sampled_from(tasks), max_size=20)):
        free = [place for place, client in enumerate(clients) if not client.has(task)]
        holders = [place for place, client in enumerate(clients) if client.has(task)]
        companions = pairs.companions(task, holders)
        for place in free:
            here = clients[place].active | clients[place].standby
            assert pairs.has_new(place, companions) == any((task, t) not in met for t in here)
        if free:
            place = data.draw(st.sampled_from(free))
            for other in clients[place].active | clients[place].standby:
                met |= {(task, other), (other, task)}
            clients[place].standby.add(task)
            pairs.add_standby(task, place)
