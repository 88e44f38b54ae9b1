"""What came of it: a line for each violation as it happens, and a table at the end."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table

from tests.chaos.rules import Violation

_SHOWN_EACH = 3


@dataclass(slots=True)
class _Row:
    count: int = 0
    violations: int = 0
    recoveries: list[float] = field(default_factory=list)


class Report:
    """Collects what happens, from any thread, and prints it."""

    def __init__(self, seed: int, console: Console) -> None:
        self.violations: list[Violation] = []
        self._seed = seed
        self._console = console
        self._began = time.monotonic()
        self._fault, self._kind = "before any fault", "none"
        self._rows: dict[str, _Row] = {}
        self._shown: Counter[tuple[str, str, str]] = Counter()
        self._lock = threading.Lock()

    def begins(self, kind: str, fault: str) -> None:
        """Note that a fault begins: what is violated from now on is put down to it."""
        self._say(f"fault: {fault}")
        with self._lock:
            self._fault, self._kind = fault, kind
            self._row(kind).count += 1

    def recovered(self, kind: str, seconds: float) -> None:
        """Note how long it took after a fault until all was right again."""
        self._say(f"all is right {seconds:.1f} s after: {kind}")
        with self._lock:
            self._row(kind).recoveries.append(seconds)

    def note(self, what: str) -> None:
        """Print what is worth a line and is no violation."""
        self._say(what)

    def violated(self, violation: Violation) -> None:
        """Note a violation and print it as a line of JSON; the same again only a few times."""
        with self._lock:
            self.violations.append(violation)
            self._row(self._kind).violations += 1
            subject = violation.said.partition(" = ")[0]
            key = (self._fault, violation.rule, subject)
            self._shown[key] += 1
            if self._shown[key] > _SHOWN_EACH:
                return
            fault = self._fault
        line = {
            "violation": violation.rule,
            "at_seconds": round(violation.at - self._began, 1),
            "seed": self._seed,
            "fault": fault,
            "said": violation.said,
            "true": violation.true,
        }
        self._console.print(json.dumps(line), style="red", markup=False, soft_wrap=True)

    def table(self) -> Table:
        """Lay out faults × count × violations × slowest recovery."""
        table = Table(title=f"Chaos with seed {self._seed}: {self.seconds:.0f} s")
        for name in ("fault", "count", "violations", "slowest recovery, s", "median, s"):
            table.add_column(name, justify="left" if name == "fault" else "right")
        for kind, row in sorted(self._rows.items()):
            times = sorted(row.recoveries)
            slowest, median = (
                (f"{times[-1]:.1f}", f"{times[len(times) // 2]:.1f}") if times else ("", "")
            )
            table.add_row(kind, str(row.count), str(row.violations), slowest, median)
        total = sum(row.count for row in self._rows.values())
        table.add_row("all", str(total), str(len(self.violations)), "", "", style="bold")
        return table

    @property
    def seconds(self) -> float:
        """How long it has gone on."""
        return time.monotonic() - self._began

    def _row(self, kind: str) -> _Row:
        return self._rows.setdefault(kind, _Row())

    def _say(self, what: str) -> None:
        line = f"{self.seconds:7.1f} s  {what}"
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)
