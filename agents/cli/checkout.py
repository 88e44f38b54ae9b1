"""Commands that a checkout has and an installation hasn't: the demo and the benchmarks."""

from __future__ import annotations

from importlib.util import find_spec

import click

from caughtup.agents.cli.lazy import LazyCommand
from caughtup.agents.errors import UserError


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
