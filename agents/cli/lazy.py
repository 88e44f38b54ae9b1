"""Commands that are imported when they are called, so that help and completion need none of them."""

from __future__ import annotations

from importlib import import_module

import click


class LazyCommand(click.Command):
    """Stands for a command in its group's list: its name and short help.

    ``origin`` is ``MODULE:FUNCTION``; the function's name is the command's.
    """

    def __init__(self, origin: str, short_help: str) -> None:
        self._module, _, function = origin.partition(":")
        super().__init__(function, short_help=short_help)

    def load(self) -> click.Command:
        """Import the command."""
        command: click.Command = getattr(import_module(self._module), self.name or "")
        return command


class LazyGroup(click.Group):
    """A group that imports a lazy command once it is called, or its own help is asked for."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that arguments name, and import it."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command.load() if isinstance(command, LazyCommand) else command, rest
