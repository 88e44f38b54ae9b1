"""Where packages of an extra are missing: which command says so, and what to type there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from caughtup.pipelines.extras import install_command

#: Each command that needs an extra, what it has to be given, and the extra.
NEEDING = [
    (["demo", "--scripted"], "demo"),
    (["pipeline", "history", "--output", "o", "--checkpoint", "c"], "spark"),
    (["pipeline", "rates", "--checkpoint", "c"], "spark"),
    (["pipeline", "generations", "--output", "o"], "spark"),
    (["pipeline", "compact", "--output", "o"], "spark"),
    (["history", "--tables", "t"], "history"),
    (["replay", "--from", "g"], "spark"),
    (["bench", "assign"], "demo"),
    (["bench", "churn"], "demo"),
    (["bench", "fleet", "--output", "o"], "spark"),
    (["bench", "follow"], "demo"),
    (["bench", "freshness"], "demo"),
    (["bench", "history"], "demo"),
    (["bench", "live"], "demo"),
    (["bench", "loop"], "demo"),
    (["bench", "movement"], "demo"),
    (["bench", "offsets"], "demo"),
    (["bench", "reassignments"], "demo"),
    (["bench", "replay"], "spark"),
    (["bench", "restart"], "demo"),
    (["bench", "scrape"], "demo"),
    (["bench", "stalls"], "demo"),
]
#: Runs each in one interpreter that finds none of the extras' packages.
PROGRAM = """
import json, sys
sys.modules.update(dict.fromkeys(("pyspark", "pandas", "pyarrow", "py4j", "scipy")))
from click.testing import CliRunner
from caughtup.agents.main import main
for words in json.loads(sys.argv[1]):
    ran = CliRunner().invoke(main, words)
    print(json.dumps([ran.exit_code, ran.stdout, ran.stderr]))
"""


def test_every_command_that_needs_an_extra_names_it_and_how_to_install_it(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps([words for words, _ in NEEDING])],
        cwd=tmp_path,
        env={**os.environ, "CAUGHTUP_CACHE": str(tmp_path / "cache")},  # where no jars are yet
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    for (words, extra), line in zip(NEEDING, ran.stdout.splitlines(), strict=True):
        code, stdout, stderr = json.loads(line)
        assert (code, stdout) == (1, ""), (words, code, stdout, stderr)
        *others, said = stderr.splitlines()
        assert said.startswith("caughtup: "), words
        assert said.endswith(f"; type: pip install 'caughtup[{extra}]'"), (words, stderr)
        assert not [other for other in others if not other.startswith("Fetching the kafka jars")]


@pytest.mark.parametrize(
    ("receipt", "expected"),
    [
        ("pyvenv.cfg", "pip install 'caughtup[spark]'"),
        ("pipx_metadata.json", "pipx runpip caughtup install 'caughtup[spark]'"),
        ("uv-receipt.toml", "uv pip install --python '{}' 'caughtup[spark]'"),
    ],
)
def test_what_to_type_fits_what_made_the_environment(
    receipt: str, expected: str, tmp_path: Path
) -> None:
    environment = tmp_path / "tools of mine" / "caughtup"
    environment.mkdir(parents=True)
    (environment / receipt).touch()
    assert install_command("spark", environment) == expected.format(environment)
