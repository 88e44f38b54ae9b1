"""What the demo says to try: commands that the command line takes, with nothing left to fill in."""

from __future__ import annotations

import shlex

import pytest

from caughtup.agents.cli.commands import LazyCommand
from caughtup.agents.main import main
from caughtup.demo.story.show import program, to_compare, to_try

SAID = (".venv/bin/caughtup", "127.0.0.1:1,127.0.0.1:2", "http://127.0.0.1:8080/")
TRIED = (*to_try(*SAID, "orders"), *to_compare(*SAID, "orders-caughtup", "orders-kafka"))


@pytest.mark.parametrize("line", TRIED)
def test_the_command_line_takes_it(line: str) -> None:
    called, name, *arguments = shlex.split(line)
    assert called == ".venv/bin/caughtup"
    command = main.commands[name]
    assert isinstance(command, LazyCommand)
    context = command.load().make_context(name, arguments)
    assert context.params.get("service") in (None, "http://127.0.0.1:8080")


def test_it_is_run_as_the_demo_was() -> None:
    assert program("/opt/my venv/bin/caughtup") == "'/opt/my venv/bin/caughtup'"
    assert (
        program("/x/agents/__main__.py", "/usr/bin/python3")
        == "/usr/bin/python3 -m caughtup.agents"
    )
