"""A base class for context managers that call ``close()`` at the end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self


class ClosedOnExit(ABC):
    """Makes a context manager of a class with ``close()``."""

    @abstractmethod
    def close(self) -> None:
        """End what was started."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()
