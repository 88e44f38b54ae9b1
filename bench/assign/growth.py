"""Measure how the time and memory of our decisions grow with the group."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from rich.table import Table

from caughtup.agents.progress import Progress
from caughtup.bench.assign.group_sizes import GroupSize, first_round, next_round, one_more_client
from caughtup.bench.assign.pairs import decide_timed, summary
from caughtup.bench.figures import Figures
from caughtup.models.errors import CaughtupError

#: Tasks × clients from 1,000 to 1,000,000, with one thread for each client, one standby a task.
GROWTH: dict[str, tuple[tuple[int, int], ...]] = {
    "as many clients as tasks": ((32, 32), (100, 100), (316, 316), (1_000, 1_000)),
    "100 tasks a client": ((316, 3), (1_000, 10), (3_162, 32), (10_000, 100)),
    "100 clients a task": ((3, 316), (10, 1_000), (32, 3_162), (100, 10_000)),
}
ROUNDS = ("starts", "goes on", "gets one more client")


def measure_growth(assignor: str, repeats: int) -> Iterator[dict[str, object]]:
    """Measure the decisions on growing groups, each group in a process of its own.

    ``peak_mib``: the process's peak resident memory, with Python and the scenario's JSON. Raises
    CaughtupError when a process fails.
    """
    points = [(family, *size) for family, sizes in GROWTH.items() for size in sizes]
    with Progress().task("Deciding", len(points)) as advance:
        for family, tasks, clients in points:
            figures = _in_a_process(assignor, GroupSize(tasks, clients, 1, 1), repeats)
            advance(1)
            yield {
                "family": family,
                "tasks": tasks,
                "clients": clients,
                "pairs": tasks * clients,
                **figures,
            }


def growth_table(figures: Sequence[Figures]) -> Table:
    """Return the figures as a table."""
    table = Table(title="Milliseconds of CPU for a decision when the group …: median")
    for column in ("tasks × clients", "product", *(f"… {name}" for name in ROUNDS), "peak MiB"):
        table.add_column(column, justify="right")
    for figure in figures:
        table.add_row(
            f"{figure['tasks']:,} × {figure['clients']:,}",
            f"{figure['pairs']:,}",
            *(f"{figure['rounds'][name]['cpu_ms']:,.1f}" for name in ROUNDS),
            f"{figure['peak_mib']:,.0f}",
        )
    return table


def measure_group(assignor: str, size: GroupSize, repeats: int) -> dict[str, object]:
    """Measure a group's rounds one after another, and this process's peak memory."""
    scenario = first_round(assignor, size)
    rounds = {}
    for name in ROUNDS:
        timings = []
        for _ in range(repeats):
            timing, decision = decide_timed(scenario)
            timings.append(timing)
        rounds[name] = summary(timings)
        scenario = next_round(scenario, decision)
        if name == ROUNDS[-2]:
            scenario = one_more_client(scenario)
    return {"rounds": rounds, "peak_mib": _peak_kib() / 1024}


def _in_a_process(assignor: str, size: GroupSize, repeats: int) -> dict[str, object]:
    command = [sys.executable, "-m", __name__, assignor, str(size), str(repeats)]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        reason = (done.stderr.decode(errors="replace").splitlines() or ["without a word"])[-1]
        raise CaughtupError("bench_failed", f"deciding {size} failed: {reason}")
    figures: dict[str, object] = msgspec.json.decode(done.stdout)
    return figures


def _peak_kib() -> int:
    # Not getrusage, whose value begins with the parent's peak.
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))


if __name__ == "__main__":
    _assignor, _size, _repeats = sys.argv[1:]
    _figures = measure_group(_assignor, GroupSize.parse(_size), int(_repeats))
    sys.stdout.buffer.write(msgspec.json.encode(_figures))
