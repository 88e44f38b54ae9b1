"""The checks of the scripted demo: facts with expected and seen values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field


@dataclass(frozen=True, slots=True)
class Fact:
    """One checked fact. ``expected`` and ``seen`` are short texts."""

    fact: str
    expected: str
    seen: str
    ok: bool

    def line(self) -> dict[str, object]:
        """Return the fact as a JSON line."""
        return asdict(self)


@dataclass(slots=True)
class Facts:
    """The facts so far; ``tell`` is called with each as it is checked."""

    tell: Callable[[Fact], None]
    checked: list[Fact] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether there are facts and all of them hold."""
        return bool(self.checked) and all(fact.ok for fact in self.checked)

    def check(self, fact: str, expected: object, seen: object, ok: bool | None = None) -> None:
        """Add a fact; it holds if both values are equal, unless the caller gives ``ok``."""
        holds = expected == seen if ok is None else ok
        found = Fact(fact, str(expected), str(seen), holds)
        self.checked.append(found)
        self.tell(found)
