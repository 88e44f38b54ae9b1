"""``caughtup safe`` held to its word: ``python -m tests.integration.simulation.safe``.

Each try draws an instance, how it goes, how long a task may stand still and what went before, asks,
and then really ends the instance.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.story.stage import caughtup_command
from caughtup.models.what_if.safety import safe_to_stop
from caughtup.models.what_if.setting import WhatIfSetting
from tests.integration.simulation.application import (
    TASKS,
    SlowApplication,
    now_ms,
    waited,
)
from tests.integration.simulation.observed import longest_still, written_times
from tests.integration.simulation.stories import measure
from tests.support.kafka.quotas import BROKER

RECORDS, PER_SECOND, RESTORE_BYTES = 2_000, 3.0, 500_000
SESSION_MS = 6_000
INSTANCES = ("k", "l", "m", "n")
#: For how long a task may stand still, s: below and above what stopping costs.
LEAST, MOST = 1.5, 20.0
_SECONDS = 600.0
CALM, ANEW, AWAY = "all are there", "another one is back with an empty disk", "another one is away"


@dataclass(frozen=True)
class Try:
    """What was drawn, what was said, and what really came of it (ms)."""

    client: str
    leaves: bool
    before: str
    within_ms: int
    safe: bool
    foretold_ms: int
    real_ms: int
    reason: str

    @property
    def was_safe(self) -> bool:
        """Whether no task stood still for longer."""
        return self.real_ms <= self.within_ms

    @property
    def right(self) -> bool:
        """Whether it was as it was said to be."""
        return self.safe == self.was_safe


def attempt(
    app: SlowApplication, drawn: random.Random, rate: float, *, by_command: bool = False
) -> Try:
    """Draw a try, ask, end the instance, and start all again that are away."""
    before = drawn.choice((CALM, CALM, ANEW, AWAY))
    client, other = drawn.sample(app.names[:3], 2)
    leaves = drawn.random() < 0.7
    within_ms = round(1_000 * drawn.uniform(LEAST, MOST))
    if before != CALM:
        app.stop(other)
        app.lose_disk(other)
        if before == ANEW:
            app.start(other)
        waited(
            "all run",
            lambda: app.running_well() and app.members() == len(app.streams.instances),
            _SECONDS,
        )
        time.sleep(drawn.uniform(0.0, 10.0))
    group = waited("the group is known", app.group, 60)
    answer = safe_to_stop(
        group,
        client,
        within_ms=within_ms,
        setting=WhatIfSetting(),
        etas_ms={},
        leave_group=leaves,
    )
    safe, reason = answer.safe, answer.reason
    if by_command:
        safe, reason = command(app, client, within_ms, rate, leaves=leaves)
    began = now_ms()
    (app.stop if leaves else app.kill)(client)
    waited(
        "the others run all",
        lambda: app.members() == len(app.streams.instances) and app.running_well(),
        _SECONDS,
    )
    time.sleep(1.0)
    ended = now_ms()
    real_ms = longest_still(written_times(app.cluster, app.changelog, began - 3_000, ended), began)
    for name in app.names[:3]:
        if name not in app.streams.instances:
            app.start(name)
    waited("all run again", lambda: app.running_well() and app.members() == 3, _SECONDS)
    return Try(client, leaves, before, within_ms, safe, answer.still_ms, real_ms, reason)


def command(
    app: SlowApplication, client: str, within_ms: int, rate: float, *, leaves: bool
) -> tuple[bool, str]:
    """Ask ``caughtup safe`` itself, with the configs in its settings: whether it is, and why."""
    configs = app.streams.parameters[app.name]
    told = [f'"{name}" = {value}' for name, value in configs.items() if isinstance(value, int)]
    settings = Path(tempfile.mkdtemp()) / "caughtup.toml"
    settings.write_text("\n".join([f'[applications."{app.name}"]', *told, ""]))
    asked = [*caughtup_command(), "safe", app.name, "--stop", client]
    asked += ["--within", f"{within_ms / 1_000:.3f}s", "--restore-rate", f"{rate:.1f}"]
    asked += ["--bootstrap-servers", app.cluster.bootstrap_servers]
    asked += ["--config", str(settings)]
    ran = subprocess.run(
        [*asked, *(["--leave-group"] if leaves else [])],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode in {0, 1}, ran.stderr
    return ran.returncode == 0, ran.stdout.splitlines()[0]


def rows(tries: Sequence[Try]) -> list[str]:
    """Write what was right and what wasn't, and the tries themselves."""
    kinds = {
        (said, was): sum(one.safe == said and one.was_safe == was for one in tries)
        for said in (True, False)
        for was in (True, False)
    }
    lines = [
        "| | no task stood still for longer | one did |",
        "|---|---|---|",
        f"| said to be safe | {kinds[True, True]} | {kinds[True, False]} |",
        f"| said not to be | {kinds[False, True]} | {kinds[False, False]} |",
    ]
    lines += [
        f"  {'right' if one.right else 'WRONG'}: {one.client} "
        f"{'leaves' if one.leaves else 'is killed'}, {one.before}: "
        f"{'safe' if one.safe else 'not safe'} within {one.within_ms / 1_000:.1f} s, "
        f"foretold {one.foretold_ms / 1_000:.1f} s, was {one.real_ms / 1_000:.1f} s"
        + ("" if one.right else f"; {one.reason}")
        for one in tries
    ]
    return lines


def tries(
    seed: int, count: int, cluster: EmbeddedCluster | None = None, by_command: int = 10
) -> list[Try]:
    """Start an application and make so many tries, each printed as soon as it is made.

    On a cluster of its own unless one is given. Every ``by_command``th try asks the command.
    """
    drawn, made = random.Random(seed), []
    properties = {"num.standby.replicas": "1", "session.timeout.ms": str(SESSION_MS)}
    with ExitStack() as stack:
        if cluster is None:
            cluster = stack.enter_context(EmbeddedCluster(nodes=1, broker_properties=BROKER))
        app = stack.enter_context(
            SlowApplication(
                cluster,
                "asked",
                restore_bytes=RESTORE_BYTES,
                properties=properties,
                names=INSTANCES,
            )
        )
        app.set_up(RECORDS, PER_SECOND)
        rates = measure(app)
        app.restore_rate = rates.restore
        print(f"safe, seed {seed}: {rates}", flush=True)
        for number in range(count):
            made.append(attempt(app, drawn, rates.restore, by_command=number % by_command == 0))
            print(rows(made)[-1], flush=True)
            if len(made) % 5 == 0:
                print("\n".join(rows(made)[:4]), flush=True)
    return made


def printed(
    seed: int, count: int, cluster: EmbeddedCluster | None = None, by_command: int = 10
) -> None:
    """Make tries, and print what came of them."""
    print("\n".join(rows(tries(seed, count, cluster, by_command))))
    print(f"{TASKS} tasks; load", *(f"{one:.1f}" for one in os.getloadavg()), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tries", type=int, default=40)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--by-command", type=int, default=10, help="ask the command every Nth time")
    given = parser.parse_args()
    printed(given.seed, given.tries, by_command=given.by_command)


if __name__ == "__main__":
    main()
