"""The page writes figures as the terminal does: both are asked for the same ones."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path
from typing import Any, get_args

import pytest

from caughtup.agents.page_columns import DECLARED
from caughtup.agents.units import Unit, formatted
from caughtup.models.durations import counted, duration, size

FORMAT = Path(__file__).parents[3] / "agents" / "web" / "static" / "shell" / "format.js"
CELLS = FORMAT.parents[1] / "cells.js"
SEED = random.SystemRandom().randrange(10**9)
#: What stands at a limit between two units, or right between two figures.
FIGURES = (
    *(0, 0.04, 0.25, 0.35, 1.0, 6.25, 9.94, 9.95, 9.96, 10, 42, 64.5, 65.5, 90, 119.4, 119.5),
    *(120, 195, 390, 450, 7_170, 7_199, 7_200, 11_700, 86_400, 3_600_000, 12_345_678),
    *(999.4, 999.5, 1_000, 1_250, 1_350, 9_949, 9_950, 999_499, 999_500, 1.25e6, 2.4e9, 7e15),
    *(-0.04, -3, -6.25, -2_250),
)
ASK = """
globalThis.document = { baseURI: "http://127.0.0.1/" };
const { bytes, duration, plural, written } = await import(%s);
const { CELLS } = await import(%s);
const cells = () => Object.keys(CELLS);
const asked = { duration, bytes, plural: (number) => plural(number, "offset"), written, cells };
const said = JSON.parse(process.argv[1]).map(([name, values]) => asked[name](...values));
console.log(JSON.stringify(said));
"""
UNITS: list[tuple[Unit, list[Any]]] = [
    ("text", ["A"]),
    ("text", [None]),
    ("partition", ["orders", 3]),
    ("route", [[1, 2], [3, 4]]),
    ("route", [[], [3]]),
    ("of", [[1, 2, 9], [2, 3]]),
    ("left", [1_250_000, 7]),
    ("left", [None, 1]),
    ("left", [None, 12_345]),
    ("left", [None, None]),
    ("bytes/s", [20_000.0]),
    ("bytes/s", [None]),
    ("records/s", [12_345.5]),
    ("records/s", [0.4]),
    ("time to go", [90, None]),
    ("time to go", [None, True]),
    ("time to go", [None, None]),
    ("number", [12_345]),
    ("count", [["a", "b"]]),
    ("names", [["a"], ["b-0", "b-1"]]),
    ("list", [["w1", "w2"]]),
    ("leader", [True]),
    ("leader", [False]),
    ("yes or no", [True]),
    ("yes or no", [False]),
    ("share", [0.345]),
    ("share", [None]),
    ("broker is", [True, False, True]),
    ("transaction", ["payments", 7]),
    ("transaction", [None, 7]),
]
#: What the page writes in its own way: with separators, a dash for unknown, and readable times.
OWN: list[tuple[Unit, list[Any], str]] = [
    ("number", [None], "–"),
    ("records/s", [None], "–"),
    ("known", [12_345], "12,345"),
    ("known", [None], "–"),
    ("lag", [12_345, None], "12,345"),
    ("lag", [None, 12_345], "≥ 12,345"),
    ("lag", [None, None], "–"),
    ("age", [372.0, "interpolated"], "6 min"),
    ("age", [42.0, "at_least"], "≥ 42 s"),
    ("age", [None, None], "–"),
    ("committed", [12_345, True, None], "12,345"),
    ("committed", [12_345, True, 12_000], "12,345 from 12,000"),
    ("committed", [None, False, None], "–"),
    ("since", [1_000], "90 s"),
    ("since", [None], "–"),
    ("until", [131_000], "in 40 s"),
    ("until", [None], "–"),
    ("seconds to go", [131_000], "40 s"),
    ("seconds to go", [None], ""),
    ("time since", [51_000], "40 s"),
    ("time since", [None], ""),
    ("held", [[["orders", 3, 20]]], "orders-3"),
    ("held", [[["orders", 3, 20], ["clicks", 0, 5]]], "orders-3 and 1 more"),
    ("held", [[]], ""),
    ("state", ["slow"], "slow"),
    ("state", [None], "–"),
    ("log end", [12_345, 7, "ok"], "12,345"),
    ("log end", [100, 105, "ok"], "≥ 105"),
    ("log end", [100, 105, "rewound"], "100"),
    ("log end", [None, 105, None], "–"),
]
NOW_MS = 91_000


def on_the_page(asked: list[tuple[str, list[Any]]]) -> list[Any]:
    script = ASK % tuple(json.dumps(path.as_uri()) for path in (FORMAT, CELLS))
    done = subprocess.run(
        ["node", "--input-type=module", "--eval", script, json.dumps(asked)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    said: list[Any] = json.loads(done.stdout)
    return said


@pytest.mark.parametrize("name", ["duration", "bytes"])
def test_the_page_writes_durations_and_sizes_as_the_terminal_does(name: str) -> None:
    print(f"seed {SEED}")
    draw = random.Random(SEED)
    drawn = [draw.uniform(0, 10 ** draw.randrange(1, 10)) for _ in range(500)]
    halves = [draw.randrange(10**6) / 4 for _ in range(500)]
    figures = [*FIGURES, *drawn, *halves]
    here = duration if name == "duration" else size
    assert on_the_page([(name, [figure]) for figure in figures]) == [*map(here, figures)]


def test_the_page_writes_counts_as_the_terminal_does() -> None:
    numbers = [0, 1, 2, 999, 1_000, 1_234_567]
    asked: list[tuple[str, list[Any]]] = [("plural", [number]) for number in numbers]
    assert on_the_page(asked) == [counted(number, "offset") for number in numbers]


def test_the_page_writes_every_unit_as_the_terminal_does_or_in_its_own_way() -> None:
    asked: list[tuple[str, list[Any]]] = [("written", [unit, values]) for unit, values in UNITS]
    assert on_the_page(asked) == [formatted(unit, *values) for unit, values in UNITS]
    own = on_the_page([("written", [unit, values, NOW_MS]) for unit, values, _ in OWN])
    assert own == [said for _, _, said in OWN]
    assert {unit for unit, _ in UNITS} | {unit for unit, _, _ in OWN} == set(get_args(Unit))


def test_the_page_has_every_renderer_that_a_column_names_and_no_column_twice() -> None:
    (renderers,) = on_the_page([("cells", [])])
    named = set()
    for table in DECLARED["columns"].values():
        pages = [(column.page, column.of[0]) for column in table if column.page is not None]
        named |= {page.cell for page, _ in pages if page.cell}
        ids = [page.id or name for page, name in pages]
        assert len(ids) == len(set(ids))
    assert named == set(renderers)
