"""The scripted demo's last act: check every generation, and the history on disk."""

from __future__ import annotations

import json
import subprocess

import pyarrow.dataset

from caughtup.demo.story.facts import Facts
from caughtup.demo.story.stage import APPLICATION, DemoStage, View, caughtup_command
from caughtup.demo.story.truth import generations_in_log, recommendations_in_log

_HISTORY_SECONDS = 90.0
_Row = tuple[str, int, int | None, int]


def check_generations(stage: DemoStage, facts: Facts) -> None:
    """Check that every generation has a recommendation, and a match if all inputs are known."""
    wanted = generations_in_log(stage.cluster, APPLICATION)

    def published() -> list[View] | None:
        records = recommendations_in_log(stage.cluster, APPLICATION)
        return records if {r["generation"] for r in records} >= wanted else None

    records = stage.wait("a recommendation for each generation", published, 30.0)
    generations = [record["generation"] for record in records]
    facts.check("generations with a recommendation", len(wanted), len(set(generations)))
    facts.check("recommendations published twice", 0, len(generations) - len(set(generations)))
    known = [record for record in records if not record["inputs"]["unknown"]]
    same = [record for record in known if record["leader"]["result"] == "match"]
    facts.check(
        f"decisions identical to the leader's, of {len(wanted)} generations, inputs known in",
        len(known),
        len(same),
        len(known) == len(same) > 0,
    )
    differing = [r["generation"] for r in records if r["leader"]["result"] == "mismatch"]
    facts.check("decisions that differ", [], differing)


def check_history(stage: DemoStage, facts: Facts) -> None:
    """Check that the history's last row of each partition equals ``caughtup lag``."""
    expected = _lag_rows(stage)

    def written() -> dict[tuple[str, int], _Row] | None:
        rows = _history_rows(stage)
        return rows if rows == expected else None

    try:
        stage.wait("the history to reach the present", written, _HISTORY_SECONDS)
    finally:
        seen = _history_rows(stage)
        same = sum(seen.get(partition) == row for partition, row in expected.items())
        facts.check("history's last rows that equal the lag table", len(expected), same)
    total = _table(stage).count_rows()
    facts.check("history rows in Parquet", "more than partitions", total, total > len(expected))


def _lag_rows(stage: DemoStage) -> dict[tuple[str, int], _Row]:
    command = [*caughtup_command(), "lag", APPLICATION, "--format", "json"]
    command += ["--config", str(stage.settings_file)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    rows = {}
    for line in map(json.loads, lines):
        if line["kind"] == "partition":
            row = (line["topic"], line["partition"], line.get("committed"), line["lag"])
            rows[line["topic"], line["partition"]] = row
    return rows


def _history_rows(stage: DemoStage) -> dict[tuple[str, int], _Row]:
    columns = ["as_of", "topic", "partition", "committed", "lag"]
    wanted = pyarrow.dataset.field("group") == APPLICATION
    try:
        history = _table(stage)
    except FileNotFoundError:
        return {}
    if not history.schema.names:
        # The directory exists before its first file, which comes with the first batch.
        return {}
    table = history.to_table(columns=columns, filter=wanted)
    newest: dict[tuple[str, int], _Row] = {}
    for row in table.sort_by("as_of").to_pylist():
        key = row["topic"], row["partition"]
        newest[key] = (*key, row["committed"], row["lag"])
    return newest


def _table(stage: DemoStage) -> pyarrow.dataset.Dataset:
    return pyarrow.dataset.dataset(
        stage.history / "lag", format="parquet", partitioning="hive", exclude_invalid_files=True
    )
