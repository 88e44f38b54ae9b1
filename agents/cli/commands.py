"""How commands are declared: lazily imported, with examples, and for a checkout or an extra only."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import click

from caughtup.agents.errors import UserError
from caughtup.pipelines.extras import install_command


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


class NotInstalledError(UserError):
    """The command is not in this installation: it ends with status 2, as a wrong one does."""

    exit_code = 2


class CheckoutCommand(LazyCommand):
    """A lazy command of a package that wheels do not hold.

    Without the package it stands in no list and in no completion; called it says what to type.
    ``instead`` is what one types in a checkout.
    """

    def __init__(self, origin: str, short_help: str, instead: str) -> None:
        super().__init__(origin, short_help)
        self._package = ".".join(origin.split(".")[:2])
        self._instead = instead
        self.hidden = not self._is_here()

    def load(self) -> click.Command:
        """Import the command, or make one that says where it is."""
        return super().load() if self._is_here() else self._stand_in()

    def _is_here(self) -> bool:
        return find_spec(self._package) is not None

    def _stand_in(self) -> click.Command:
        def refuse() -> None:
            raise NotInstalledError(
                f"`caughtup {self.name}` needs a checkout, since a wheel is made without it: "
                f"git clone caughtup's repository and type there: {self._instead}"
            )

        # Whatever follows the name, --help too, is answered by the one line.
        return click.Command(
            self.name,
            callback=refuse,
            add_help_option=False,
            context_settings={
                "ignore_unknown_options": True,
                "allow_extra_args": True,
                "help_option_names": [],
            },
        )


def not_in_checkout(error: ImportError) -> UserError:
    """Return an error for a package that the demo needs and this environment was made without."""
    return UserError(f"{error}; type in the checkout: make install")


def examples(*commands: str) -> str:
    """Return what ends a command's help: commands to try, a line each, which are never wrapped."""
    return "\n  ".join(("\b\nExamples:", *commands))


def missing_extra(extra: str, error: ImportError) -> UserError:
    """Return an error that names what is missing, and the command that installs it here."""
    return UserError(f"{error}; type: {install_command(extra)}")
