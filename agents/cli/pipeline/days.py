"""A number of days as an option's value."""

from __future__ import annotations

import re
from typing import Any

import click

_DAYS = re.compile(r"([0-9]{1,5})d")


class Days(click.ParamType):
    """Days, such as ``90d``."""

    name = "days"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return how many. Refuses what is none, and none at all."""
        if isinstance(value, int):
            return value
        found = _DAYS.fullmatch(str(value).strip())
        if not found or not int(found[1]):
            self.fail(f"{value!r} is not a number of days, such as 90d", param, ctx)
        return int(found[1])


keep_option = click.option(
    "--keep",
    type=Days(),
    metavar="DAYS",
    help="Leave out rows of days that are longer ago, such as 90d. [default: keep all]",
)
