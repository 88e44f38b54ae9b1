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
    (["pipeline", "history", "--output", "o", "--checkpoint", "c"], "spark"),
    (["pipeline", "rates", "--checkpoint", "c"], "spark"),
    (["pipeline", "generations", "--output", "o"], "spark"),
    (["pipeline", "compact", "--output", "o"], "spark"),
    (["history", "--tables", "t"], "history"),
    (["replay", "--from", "g"], "spark"),
    (["mcp"], "mcp"),
]
#: Commands that only a checkout has.
OF_A_CHECKOUT = [
    ["demo", "--scripted"],
    ["bench", "asking"],
    ["bench", "assign"],
    ["bench", "churn"],
    ["bench", "fleet", "--output", "o"],
    ["bench", "follow"],
    ["bench", "freshness"],
    ["bench", "history"],
    ["bench", "live"],
    ["bench", "loop"],
    ["bench", "movement"],
    ["bench", "offsets"],
    ["bench", "reassignments"],
    ["bench", "replay"],
    ["bench", "restart"],
    ["bench", "scrape"],
    ["bench", "shared"],
    ["bench", "stalls"],
]
#: Runs each in one interpreter that finds none of the extras' packages.
PROGRAM = """
import json, sys
sys.modules.update(dict.fromkeys(("pyspark", "pandas", "pyarrow", "py4j", "scipy", "mcp")))
from click.testing import CliRunner
from caughtup.agents.main import main
for words in json.loads(sys.argv[1]):
    ran = CliRunner().invoke(main, words)
    print(json.dumps([ran.exit_code, ran.stdout, ran.stderr]))
"""


def said(commands: list[list[str]], directory: Path) -> list[str]:
    """Run the commands without any extra; return what each ends with, which is one line."""
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(commands)],
        cwd=directory,
        env={**os.environ, "CAUGHTUP_CACHE": str(directory / "cache")},  # where no jars are yet
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    lines = []
    for words, line in zip(commands, ran.stdout.splitlines(), strict=True):
        code, stdout, stderr = json.loads(line)
        assert (code, stdout) == (1, ""), (words, code, stdout, stderr)
        *others, last = stderr.splitlines()
        assert last.startswith("caughtup: "), words
        assert not [other for other in others if not other.startswith("Fetching the kafka jars")]
        lines.append(last)
    return lines


def test_every_command_that_needs_an_extra_names_it_and_how_to_install_it(tmp_path: Path) -> None:
    lines = said([words for words, _ in NEEDING], tmp_path)
    for (words, extra), line in zip(NEEDING, lines, strict=True):
        assert line.endswith(f"; type: pip install 'caughtup[{extra}]'"), (words, line)


def test_what_a_checkout_lacks_make_installs(tmp_path: Path) -> None:
    """Java's part comes with PySpark, which is an extra, too."""
    for words, line in zip(OF_A_CHECKOUT, said(OF_A_CHECKOUT, tmp_path), strict=True):
        assert line.endswith(
            "; type: pip install 'caughtup[spark]'"
            if "PySpark is not installed" in line
            else "; type in the checkout: make install"
        ), words


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
