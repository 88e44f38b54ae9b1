"""The command line: what is known of a command before it is imported, and that help needs no more."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from caughtup.agents.cli.commands import LazyCommand
from caughtup.agents.main import main

#: What takes long to import, or starts threads.
HEAVY = (
    "aiohttp",
    "aiokafka",
    "confluent_kafka",
    "faust",
    "numpy",
    "msgspec",
    "pyarrow",
    "pydantic",
    "pyspark",
    "rich",
    "scipy",
    "textual",
)
GROUPS = ((), ("pipeline",), ("bench",))


def lazy_commands(group: click.Group) -> Iterator[LazyCommand]:
    for command in group.commands.values():
        if isinstance(command, LazyCommand):
            yield command
            loaded = command.load()
            if isinstance(loaded, click.Group):
                yield from lazy_commands(loaded)


LAZY = list(lazy_commands(main))


@pytest.mark.parametrize("command", LAZY, ids=lambda command: str(command.name))
def test_what_a_group_lists_is_what_the_command_says_of_itself(command: LazyCommand) -> None:
    loaded = command.load()
    assert loaded.name == command.name
    assert loaded.short_help == command.short_help
    assert (loaded.hidden, loaded.deprecated) == (command.hidden, command.deprecated)


EXAMPLES = [
    (command, example)
    for command in (*(lazy.load() for lazy in LAZY), main.commands["completion"])
    if not isinstance(command, click.Group)
    for example in (command.epilog or "no example of its own")
    .removeprefix("\b\nExamples:")
    .splitlines()
    if example
]


@pytest.mark.parametrize(
    ("command", "example"), EXAMPLES, ids=[example.strip()[:60] for _, example in EXAMPLES]
)
def test_every_command_has_examples_that_it_takes(command: click.Command, example: str) -> None:
    called, *words = shlex.split(
        example.replace('eval "$(', "").split(" <")[0].split(" |")[0].split(" >")[0].rstrip(')"')
    )
    assert called == "caughtup"
    group: click.Command = main
    while isinstance(group, click.Group):
        found = group.commands[words.pop(0)]
        group = found.load() if isinstance(found, LazyCommand) else found
    assert group is command
    group.make_context(str(group.name), words)


@pytest.mark.parametrize("words", GROUPS, ids=" ".join)
def test_help_imports_nothing_heavy(words: tuple[str, ...]) -> None:
    program = (
        "import sys\n"
        "from caughtup.agents.main import main\n"
        f"main([*{words!r}, '--help'], 'caughtup', standalone_mode=False)\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    *_, imported = ran.stdout.splitlines()
    assert imported == "[]"
    assert "Commands:" in ran.stdout


@pytest.mark.parametrize(
    "words", [("run",), ("replay",), ("pipeline", "history"), ("bench", "scrape")], ids=" ".join
)
def test_a_commands_help_is_its_own(words: tuple[str, ...]) -> None:
    ran = CliRunner().invoke(main, [*words, "--help"])
    assert ran.exit_code == 0
    assert ran.stdout.startswith(f"Usage: main {' '.join(words)} [OPTIONS]")
    assert "--" in ran.stdout.removesuffix("-h, --help  Show this message and exit.\n")


def completions(words: list[str], incomplete: str) -> dict[str, str | None]:
    found = ShellComplete(main, {}, "caughtup", "_CAUGHTUP_COMPLETE").get_completions(
        words, incomplete
    )
    return {item.value: item.help for item in found}


def test_a_shell_completes_commands_and_their_options() -> None:
    assert completions([], "re") == {
        "reassignments": "Show partitions in movement: progress, ETA, and what is wrong.",
        "replay": "Decide recorded generations again under other settings.",
    }
    assert completions(["pipeline"], "h").keys() == {"history"}
    assert completions(["bench"], "sc").keys() == {"scrape"}
    assert "--scrapes" in completions(["bench", "scrape"], "--")
    assert "--web-port" in completions(["run"], "--web")


def test_a_command_that_there_is_not_is_a_usage_error() -> None:
    ran = CliRunner().invoke(main, ["pipeline", "histories"])
    assert ran.exit_code == 2
    assert "No such command 'histories'" in ran.stderr
