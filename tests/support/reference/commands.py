"""docs/reference/commands.md: every command, with its help, options and examples."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import click

from caughtup.agents.cli.commands import LazyCommand
from caughtup.agents.main import main
from tests.support.reference.markdown import code, escaped, table

_HEAD = """\
# Commands

Every command with its options, as `caughtup COMMAND --help` prints them, made of the code by \
`make reference`. Exit status: 0 when it did what was asked, 1 when it could not, 2 for a wrong \
option, 3 when nothing was found that the arguments name.
"""
_COMMON = """\
## Options of most commands

A command that has them says so.
"""
#: An option of at least this many commands is described once.
_MANY = 6

Option = tuple[str, str]


def commands_page() -> str:
    """Return the page."""
    contexts = list(_contexts(click.Context(main, info_name="caughtup", **main.context_settings)))
    counted = Counter(option for context in contexts for option in _options(context))
    common = [option for option, count in counted.items() if count >= _MANY]
    parts = [_HEAD, _COMMON, *table(("option", "what"), _rows(common)), ""]
    for context in contexts:
        parts += _section(context, common)
    return "\n".join(parts)


def _contexts(parent: click.Context) -> Iterator[click.Context]:
    """Yield a context for each command below one; a group comes before its commands."""
    group = parent.command
    assert isinstance(group, click.Group)
    for name in group.list_commands(parent):
        command = group.get_command(parent, name)
        if isinstance(command, LazyCommand):
            command = command.load()
        assert command is not None
        context = click.Context(command, info_name=name, parent=parent)
        yield context
        if isinstance(command, click.Group):
            yield from _contexts(context)


def _section(context: click.Context, common: list[Option]) -> Iterator[str]:
    command = context.command
    yield f"## {context.command_path}"
    yield ""
    yield f"`{' '.join([context.command_path, *command.collect_usage_pieces(context)])}`"
    yield ""
    for paragraph in re.split(r"\n\s*\n", command.help or ""):
        yield escaped(paragraph.replace("\b", ""))
        yield ""
    options = list(_options(context))
    own = [option for option in options if option not in common]
    if own:
        yield from table(("option", "what"), _rows(own))
        yield ""
    shared = [code(name.split()[0].rstrip(",")) for name, _ in options if (name, _) in common]
    if shared:
        yield f"And {', '.join(shared)}: [above](#options-of-most-commands)."
        yield ""
    if command.epilog:
        examples = command.epilog.replace("\b", "").replace("Examples:", "").strip()
        yield "\n".join(["```sh", *(line.strip() for line in examples.splitlines()), "```", ""])


def _options(context: click.Context) -> Iterator[Option]:
    for parameter in context.command.get_params(context):
        record = parameter.get_help_record(context)
        if parameter.name == "help" and record is not None:
            # A command keeps the names of the first context that asked it.
            record = ", ".join(context.help_option_names), record[1]
        if isinstance(parameter, click.Option) and record is not None:
            yield record[0], " ".join(record[1].split())


def _rows(options: list[Option]) -> Iterator[tuple[str, ...]]:
    return ((code(name), escaped(what)) for name, what in options)
