"""Failures that a person is told of in one line each, saying what to do."""

from __future__ import annotations

import click


class UserError(click.ClickException):
    """An error shown as one line on standard error; the command then exits with status 1.

    Several things that are wrong have a line each.
    """

    def __init__(self, *messages: str) -> None:
        super().__init__("; ".join(messages))
        self.messages = messages

    def show(self, file: object = None) -> None:
        """Print each message on one line."""
        for message in self.messages:
            click.echo(f"caughtup: {' '.join(message.split())}", err=True)


class NotThereError(UserError):
    """There is no such group or client: the command exits with status 3."""

    exit_code = 3
