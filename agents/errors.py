"""Errors that are shown to users as lines that say what to do."""

from __future__ import annotations

import click


class UserError(click.ClickException):
    """An error shown on standard error, a line for each message; the exit status is 1."""

    def __init__(self, *messages: str) -> None:
        super().__init__("; ".join(messages))
        self.messages = messages

    def show(self, file: object = None) -> None:
        """Print each message on one line."""
        for message in self.messages:
            click.echo(f"caughtup: {' '.join(message.split())}", err=True)


class NotThereError(UserError):
    """There is no such group or client; the exit status is 3."""

    exit_code = 3
