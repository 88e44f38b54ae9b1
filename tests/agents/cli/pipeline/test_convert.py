"""``caughtup pipeline convert`` as its user runs it."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from caughtup.agents.cli.pipeline.convert import convert
from tests.support.pipelines.by_hand import GROUPS, records_of
from tests.support.pipelines.delta import rows_of
from tests.support.pipelines.old_layout import OldHistory


def test_it_says_what_the_tables_took_in(tmp_path: Path) -> None:
    old = OldHistory(tmp_path)
    for batch in range(2):
        old.write(batch, records_of(batch))
    arguments = ["--output", old.tables.as_uri(), "--checkpoint", str(old.checkpoint)]
    done = CliRunner().invoke(convert, arguments)
    assert done.exit_code == 0, done.output
    (line,) = (line for line in done.stdout.splitlines() if " commits " in line)
    assert [word for word in line.split() if word.isdigit()][-1] == str(2 * len(GROUPS))
    assert len(rows_of(old.tables, "commits")) == 2 * len(GROUPS)

    again = CliRunner().invoke(convert, arguments)
    assert again.exit_code == 1
    assert again.stderr.splitlines() == [
        f"caughtup: {old.checkpoint} is of schema 4, and what is converted is 3"
    ]
