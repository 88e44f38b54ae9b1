"""Declarations of commands: imported lazily, with examples, in a checkout or with an extra only."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import click

from caughtup.agents.errors import UserError
from caughtup.pipelines.extras import install_command


class LazyCommand(click.Command):
    """A command's name and short help, for help and completion, without importing it.

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
    """A group that imports a lazy command when it is called."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments name, imported, and the rest of them."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command.load() if isinstance(command, LazyCommand) else command, rest


class NotInstalledError(UserError):
    """The command is not in this installation; exits with 2, as for an unknown command."""

    exit_code = 2


class CheckoutCommand(LazyCommand):
    """A lazy command of a package that wheels do not have, hidden without the package.

    Called without it, the command says to type ``instead`` in a checkout.
    """

    def __init__(self, origin: str, short_help: str, instead: str) -> None:
        super().__init__(origin, short_help)
        self._package = ".".join(origin.split(".")[:2])
        self._instead = instead
        self.hidden = not self._is_installed()

    def load(self) -> click.Command:
        """Import the command, or return one that refuses."""
        return super().load() if self._is_installed() else self._refusing_command()

    def _is_installed(self) -> bool:
        return find_spec(self._package) is not None

    def _refusing_command(self) -> click.Command:
        def refuse() -> None:
            raise NotInstalledError(
                f"`caughtup {self.name}` needs a checkout, since a wheel is made without it: "
                f"git clone caughtup's repository and type there: {self._instead}"
            )

        # Any arguments, also --help, get the same answer.
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
    """Return the error for a missing package that the demo or a benchmark needs."""
    return UserError(f"{error}; type in the checkout: make install")


def examples(*commands: str) -> str:
    """Return the end of a command's help: example commands, one a line, not wrapped."""
    return "\n  ".join(("\b\nExamples:", *commands))


def missing_extra(extra: str, error: ImportError) -> UserError:
    """Return the error for an extra's missing package, with the command that installs it."""
    return UserError(f"{error}; type: {install_command(extra)}")
