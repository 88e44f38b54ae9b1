"""The rows of the story's table: for each round the document's outcome and Kafka's."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from caughtup.demo.connect.group_log import LoggedGeneration
from caughtup.demo.story.connect.cases import D_MS, CaseRound, RoundOutcome
from caughtup.models.connect.work import written

#: The rounds that come when a delay is over.
_DUE = ("3.2", "4.3")
#: The document's names of workers in texts.
_ROLE = re.compile(r"\bW[123]\b")


@dataclass(frozen=True)
class CaseRow:
    """A round of a case. ``roles``: the real worker for each worker of the document."""

    step: CaseRound
    roles: Mapping[str, str]
    logged: LoggedGeneration

    @property
    def event(self) -> str:
        """What happened before it, with the real workers' names."""
        return self._named(self.step.event)

    @property
    def document(self) -> str:
        """The document's outcome: the workers' work, and the delay."""
        outcome = self.step.document
        if outcome.after is None:
            return "not said"
        after = {self.roles[role]: items.split() for role, items in outcome.after.items()}
        return _text(after, _wait(outcome.delay_ms))

    @property
    def kafka(self) -> str:
        """Kafka's outcome, from the group's record."""
        delay_ms = self.logged.generation.delay_ms
        waits = f"waits {delay_ms / 1000:.1f} s" if delay_ms else ""
        return _text(_after(self.logged), waits)

    @property
    def is_due(self) -> bool:
        """Whether it came because a delay was over."""
        return self.step.number in _DUE

    @property
    def as_documented(self) -> bool | None:
        """Whether Kafka's outcome is the document's; None if the document has none.

        Compared are the workers' numbers of connectors and tasks: which ones differs from run to
        run, since the coordinator draws the member ids by which Kafka sorts workers.
        """
        return self._is(self.step.document)

    @property
    def as_decided(self) -> bool:
        """Whether Kafka's outcome, compared in the same way, is that expected of 4.3.1."""
        return self._is(self.step.decided) is True

    def line(self, match: bool) -> dict[str, object]:
        """Return the row as a JSON line."""
        return {
            "case": self.step.number,
            "event": self.event,
            "document": self.document,
            "kafka": self.kafka,
            "as_documented": self.as_documented,
            "generation": self.logged.number,
            "match": match,
        }

    def _is(self, outcome: RoundOutcome) -> bool | None:
        if outcome.after is None:
            return None
        waits = self.logged.generation.delay_ms > 0
        same = _shares(_after(self.logged)) == _shares(
            {role: items.split() for role, items in outcome.after.items()}
        )
        return same and waits == (outcome.delay_ms > 0)

    def _named(self, text: str) -> str:
        return _ROLE.sub(lambda match: self.roles.get(match[0], match[0]), text)


def shares(logged: LoggedGeneration) -> Counter[tuple[int, int]]:
    """Count the workers by their numbers of connectors and tasks after a generation."""
    return _shares(_after(logged))


def _after(logged: LoggedGeneration) -> dict[str, list[str]]:
    workers = sorted(logged.generation.workers.values(), key=lambda worker: worker.client_id)
    return {worker.client_id: written(worker.owns) for worker in workers}


def _shares(after: Mapping[str, list[str]]) -> Counter[tuple[int, int]]:
    # The names of tasks have a dash, those of the story's connectors have none.
    tasks = {worker: sum("-" in item for item in items) for worker, items in after.items()}
    return Counter((len(after[worker]) - count, count) for worker, count in tasks.items())


def _wait(delay_ms: int) -> str:
    if not delay_ms:
        return ""
    return "waits d" if delay_ms == D_MS else "waits for the rest of d"


def _text(after: Mapping[str, list[str]], waits: str) -> str:
    workers = " ".join(f"{name}[{' '.join(items)}]" for name, items in sorted(after.items()))
    return f"{workers}; {waits}" if waits else workers
