"""What an assignor decides by, but no record has: the order of a set, or of a broker's answer.

A decision that makes such choices is made again with each of them, as far as that ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


class Choices:
    """The choices of one decision: ``of`` returns the first option where the path says nothing else.

    ``expected``: only the first of several options was taken so far, each time from options whose
    first is the likely one.
    """

    def __init__(self, path: Sequence[int] = ()) -> None:
        """``path``: which option to take, choice by choice."""
        self._path = path
        self.taken: list[tuple[int, int]] = []
        self.expected = True

    def of(self, options: Sequence[T], *, likely: bool = False) -> T:
        """Return one of at least one option. ``likely``: the first one is known to be likely."""
        if len(options) == 1:
            return options[0]
        at = self._path[len(self.taken)] if len(self.taken) < len(self._path) else 0
        self.taken.append((at, len(options)))
        self.expected = self.expected and likely and at == 0
        return options[at]


class EveryChoice:
    """Yields the choices of one decision after the other; ``complete`` once there are no others."""

    def __init__(self, most: int) -> None:
        """``most``: how many are yielded at most."""
        self._most = most
        self.complete = False

    def __iter__(self) -> Iterator[Choices]:
        """Yield choices; a decision has to be made by each before the next one is taken."""
        path: list[int] = []
        for _ in range(self._most):
            choices = Choices(path)
            yield choices
            taken = choices.taken
            while taken and taken[-1][0] == taken[-1][1] - 1:
                taken.pop()
            if not taken:
                self.complete = True
                return
            path = [at for at, _ in taken]
            path[-1] += 1
