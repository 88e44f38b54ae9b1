"""What workers have after a round, and the order in which they say so."""

from __future__ import annotations

from caughtup.models.connect.decision import WorkerDecision, on_the_wire, owned_after
from tests.models.connect.building import work


def test_a_worker_names_what_is_new_first_and_a_connectors_tasks_together():
    told = WorkerDecision(assigned=work("C-0 A-1"), revoked=work("B-0"))
    after = owned_after(work("A B A-0 B-0 C-1"), told)
    assert after == work("A B A-1 A-0 C-0 C-1")


def test_tasks_of_connectors_that_a_worker_runs_itself_come_first():
    assert on_the_wire(work("Z A A-0 M-1 Z-0 M-0")) == work("A Z A-0 Z-0 M-1 M-0")


def test_connectors_are_written_in_the_order_of_a_hash_set():
    # "Aa" and "BB" have one hash code, 2112, of which 16 buckets leave 0; "c" is in bucket 3.
    assert on_the_wire(work("c BB Aa")).connectors == ("BB", "Aa", "c")
