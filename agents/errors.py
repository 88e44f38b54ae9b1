"""Failures that a person is told of in one line, saying what to do."""

from __future__ import annotations

import click


class UserError(click.ClickException):
    """An error shown as one line on standard error; the command then exits with status 1."""

    def show(self, file: object = None) -> None:
        """Print the message on one line."""
        click.echo(f"caughtup: {' '.join(self.format_message().split())}", err=True)
