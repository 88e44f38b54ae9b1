"""Names of tasks, processes and partitions: read, written, and ordered as Kafka orders them."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.errors import CaughtupError
from caughtup.models.ids import ProcessId, TaskId, TopicPartition, natural_order

uuids = st.integers(0, (1 << 128) - 1)


@settings(print_blob=True, deadline=None)
@given(st.integers(0, 999_999_999), st.integers(0, 999_999_999))
def test_a_task_id_reads_back_as_it_is_written(subtopology: int, partition: int) -> None:
    task = TaskId(subtopology, partition)
    assert TaskId.parse(str(task)) == task


@pytest.mark.parametrize(
    "text", ["", "0", "0-1", "0_", "_1", "-1_0", "0_1_2", " 0_1", "0_1\n", "٣_1", "9999999999_0"]
)
def test_what_is_not_a_task_id_is_refused_by_name(text: str) -> None:
    with pytest.raises(CaughtupError) as failure:
        TaskId.parse(text)
    assert failure.value.code == "bad_task_id"
    assert repr(text) in failure.value.message
    assert str(failure.value) == f"bad_task_id: {failure.value.message}"


def test_tasks_are_ordered_by_number_and_not_by_their_text() -> None:
    tasks = [TaskId(0, 10), TaskId(0, 9), TaskId(10, 0), TaskId(2, 0)]
    assert [str(task) for task in sorted(tasks)] == ["0_9", "0_10", "2_0", "10_0"]


@settings(print_blob=True, deadline=None)
@given(uuids)
def test_a_process_id_is_written_as_its_uuid(number: int) -> None:
    process = ProcessId.of(number)
    assert str(process) == str(UUID(int=number))
    assert ProcessId.parse(str(process)) == process
    assert ProcessId.parse(str(process).upper()) == process


@settings(print_blob=True, deadline=None)
@given(uuids)
def test_the_halves_of_a_process_id_are_javas_longs(number: int) -> None:
    process = ProcessId.of(number)
    halves = b"".join(half.to_bytes(8, signed=True) for half in process)
    assert halves == UUID(int=number).bytes


def test_processes_are_ordered_by_signed_halves_as_java_orders_uuids() -> None:
    texts = [
        "80000000-0000-0000-0000-000000000000",
        "ffffffff-ffff-ffff-0000-000000000000",
        "00000000-0000-0000-8000-000000000000",
        "00000000-0000-0000-0000-000000000001",
        "7fffffff-ffff-ffff-0000-000000000000",
    ]
    assert [str(p) for p in sorted(ProcessId.parse(text) for text in reversed(texts))] == texts


@pytest.mark.parametrize(
    "text", ["", "1", "0" * 32, "00000000-0000-0000-0000-00000000000g", "{0}", "é" * 36]
)
def test_what_is_not_a_uuid_is_refused_by_name(text: str) -> None:
    with pytest.raises(CaughtupError) as failure:
        ProcessId.parse(text)
    assert failure.value.code == "bad_process_id"


def test_a_partition_is_written_behind_its_topic() -> None:
    assert str(TopicPartition("orders-eu", 3)) == "orders-eu-3"


def test_names_are_ordered_by_their_numbers() -> None:
    names = [
        "orders-10",
        "",
        "10",
        "orders-2",
        "9",
        "orders",
        "orders-2-b",
        "orders-2-a10",
        "o-14f",
        "o-9c",
    ]
    assert sorted(names, key=natural_order) == [
        "",
        "9",
        "10",
        "o-14f",
        "o-9c",
        "orders",
        "orders-2",
        "orders-2-a10",
        "orders-2-b",
        "orders-10",
    ]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", ["1" * 100_000 + "a", "1a" * 50_000, "9" * 100_000, "1-" * 50_000])
def test_whatever_a_client_calls_itself_has_its_place_soon(name: str) -> None:
    assert "".join(f"{text}{number}" for text, number in natural_order(name)) == f"{name}-1"
