"""``make soak``: ``python -m tests.chaos.soak --minutes 60``: churn and commits, and what grows."""

from __future__ import annotations

import csv
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from caughtup.agents.progress import Progress
from caughtup.demo.cluster.cluster import EmbeddedCluster
from tests.chaos import measured_service
from tests.chaos.flat import MEASURES, judged
from tests.chaos.soak_load import SoakLoad
from tests.chaos.soak_plot import plot
from tests.support.service import Service

EVERY_SECONDS = 5.0
COLUMNS = ("seconds", *(measure.column for measure in MEASURES), "commits", "groups_made")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def soak(
    seconds: float,
    commits_per_second: float,
    groups_per_minute: float,
    stop: threading.Event,
    took: Callable[[dict[str, float]], None] = lambda _: None,
) -> list[dict[str, float]]:
    """Run the load and the service for so long, and sample; ``took`` is told of each sample."""
    samples: list[dict[str, float]] = []
    with ExitStack() as stack:
        cluster = stack.enter_context(EmbeddedCluster(1))
        load = SoakLoad(cluster, commits_per_second, groups_per_minute)
        stack.push(load)
        load.start()
        turns = cluster.processes.directory / "turns.jsonl"
        command = [sys.executable, "-m", measured_service.__name__, str(turns)]
        os.environ.setdefault("PYTHONPATH", str(Path(__file__).parents[2]))
        service = stack.enter_context(Service(cluster, command=command))
        advance = stack.enter_context(Progress().task("Soak", int(seconds)))
        began = due = time.monotonic()
        while not stop.is_set() and time.monotonic() - began < seconds:
            due += EVERY_SECONDS
            stop.wait(max(0.0, due - time.monotonic()))
            sample = {
                "seconds": round(time.monotonic() - began, 1),
                **process_figures(service.process.pid),
                "longest_turn_ms": _longest_turn_ms(turns),
                "scrape_ms": _scrape_ms(service),
                "commits": float(load.commits),
                "groups_made": float(load.made),
            }
            samples.append(sample)
            took(sample)
            advance(int(EVERY_SECONDS))
    return samples


def process_figures(pid: int) -> dict[str, float]:
    """Read a process's resident memory, and count its handles and threads; see proc(5)."""
    process = Path("/proc", str(pid))
    resident = int((process / "statm").read_text().split()[1]) * _PAGE_BYTES
    return {
        "rss_mib": round(resident / 2**20, 1),
        "handles": float(len(list((process / "fd").iterdir()))),
        "threads": float(len(list((process / "task").iterdir()))),
    }


def _longest_turn_ms(turns: Path) -> float:
    lines = turns.read_text().splitlines() if turns.exists() else []
    return round(1_000 * float(json.loads(lines[-1])["seconds"]), 1) if lines else 0.0


def _scrape_ms(service: Service) -> float:
    began = time.monotonic()
    service.metrics_text()
    return round(1_000 * (time.monotonic() - began), 1)


def verdict_table(samples: list[dict[str, float]]) -> Table:
    """Lay out how each figure fared."""
    table = Table(title="After ten minutes, or the first third of less")
    for name in ("figure", "median", "grew by", "may by", "flat"):
        table.add_column(name, justify="left" if name == "figure" else "right")
    for one in judged(samples):
        figures = (f"{one.median:,.1f}", f"{one.growth:,.1f}", f"{one.bound:,.1f}")
        table.add_row(one.measure.title, *figures, "yes" if one.is_flat else "NO")
    return table


@click.command()
@click.option("--minutes", type=float, default=3.0, show_default=True)
@click.option("--commits", type=float, default=5_000.0, show_default=True, help="A second.")
@click.option("--groups", type=float, default=50.0, show_default=True, help="A minute.")
@click.option("--to", type=click.Path(path_type=Path), default=Path("build/soak"))
def main(minutes: float, commits: float, groups: float, to: Path) -> None:
    """Churn groups and commit without end, and tell whether the service stays as it is."""
    stop = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: stop.set())
    to.parent.mkdir(parents=True, exist_ok=True)
    with to.with_suffix(".csv").open("w", newline="") as file:
        rows = csv.DictWriter(file, COLUMNS)
        rows.writeheader()

        def took(sample: dict[str, float]) -> None:
            rows.writerow(sample)
            file.flush()

        samples = soak(minutes * 60, commits, groups, stop, took)
    to.with_suffix(".svg").write_text(plot(samples))
    console = Console()
    console.print(verdict_table(samples))
    if samples:
        last = samples[-1]
        console.print(
            f"{last['commits'] / last['seconds']:,.0f} commits/s, "
            f"{60 * last['groups_made'] / last['seconds']:,.0f} groups a minute; "
            f"{to.with_suffix('.csv')}, {to.with_suffix('.svg')}"
        )
    sys.exit(0 if samples and all(one.is_flat for one in judged(samples)) else 1)


if __name__ == "__main__":
    main()
