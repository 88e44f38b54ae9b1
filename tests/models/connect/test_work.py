"""Names of connectors and tasks, and the order that Java sorts them in."""

from __future__ import annotations

import pytest

from caughtup.models.connect.work import Names, java_sorted, written
from caughtup.models.errors import ScenarioError
from caughtup.models.ids import ConnectorTaskId
from caughtup.models.wire.connect_protocol import ConnectorsAndTasks


def test_names_sort_by_utf_16_code_units_and_tasks_by_their_numbers():
    beyond, last = chr(0x1F600), "\uffff"
    assert java_sorted(["b", last, beyond, "a"]) == ("a", "b", beyond, last)
    tasks = [ConnectorTaskId(name, number) for name in (last, beyond) for number in (10, 2)]
    assert list(map(str, java_sorted(tasks))) == [
        *(f"{beyond}-2", f"{beyond}-10", f"{last}-2", f"{last}-10")
    ]


def test_connectors_are_written_before_tasks():
    listed = ["b-1", "b-0", "a-10", "b", "a-2"]
    assert written(Names([]).read(listed, "owned")) == ["b", "a-2", "a-10", "b-0", "b-1"]


@pytest.mark.parametrize("name", ["sink", "sink-", "sink-00", "sink-01", "sink-x", "s-1000000000"])
def test_a_name_without_the_number_of_a_task_is_a_connectors(name):
    assert Names([]).read([name], "owned") == ConnectorsAndTasks((name,), ())


def test_a_connector_may_be_called_as_a_task_is():
    names = Names([{"my-1": 2}])
    read = names.read(["my-1", "my-1-1", "my-0", "-3"], "owned")
    tasks = (ConnectorTaskId("my-1", 1), ConnectorTaskId("my", 0), ConnectorTaskId("", 3))
    assert read == ConnectorsAndTasks(("my-1",), tasks)


def test_a_name_that_may_be_either_is_refused():
    names = Names([{"my": 2, "my-1": 1}, {"my": 1}])
    with pytest.raises(ScenarioError, match=r"ambiguous: owned: 'my-1' is a connector, and a task"):
        names.read(["my-1"], "owned")
    assert Names([{"my": 1, "my-1": 1}]).read(["my-1"], "owned").connectors == ("my-1",)
