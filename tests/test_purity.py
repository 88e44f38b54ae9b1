"""models/ is pure: it loads without I/O, clocks, randomness or, but for one, others' packages."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

#: What the standard library has for I/O and randomness; ``time`` is in every interpreter.
IMPURE = {
    "asyncio",
    "concurrent.futures",
    "http",
    "logging",
    "multiprocessing",
    "random",
    "secrets",
    "select",
    "selectors",
    "socket",
    "sqlite3",
    "ssl",
    "subprocess",
    "tempfile",
    "urllib.request",
}

#: Decodes what is on the service's own topics, and what it brings along; computes by column.
ALLOWED = {"msgspec", "typing_extensions", "numpy"}
#: Who may import what.
IMPORTERS = {
    "msgspec": {"models/records"},
    "numpy": {
        "models/polls",
        "models/commits",
        "models/histories",
        "models/lag",
        "models/recent",
    },
}

IMPORT_ALL = """
import json, pkgutil, sys
import msgspec, numpy  # what they load is theirs
before = set(sys.modules) - {"msgspec", "numpy"}
import caughtup.models
for module in pkgutil.walk_packages(caughtup.models.__path__, "caughtup.models."):
    __import__(module.name)
print(json.dumps(sorted(set(sys.modules) - before)))
"""


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    """Name what an interpreter loads to import every module of models/."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return set(json.loads(done.stdout))


def test_every_module_of_the_models_can_be_imported(loaded: set[str]) -> None:
    files = (ROOT / "models").rglob("*.py")
    modules = {file.relative_to(ROOT).with_suffix("").parts for file in files}
    names = {".".join(("caughtup", *parts)).removesuffix(".__init__") for parts in modules}
    assert names == {name for name in loaded if name.startswith("caughtup.models")}


def test_the_models_load_the_standard_library_themselves_and_msgspec(loaded: set[str]) -> None:
    roots = {name.split(".")[0] for name in loaded}
    assert roots - sys.stdlib_module_names - ALLOWED == {"caughtup"}
    ours = {name for name in loaded if name.split(".")[0] == "caughtup"}
    assert {name for name in ours if not name.startswith("caughtup.models")} == {"caughtup"}


@pytest.mark.parametrize("package", IMPORTERS)
def test_what_is_not_ours_is_imported_where_it_is_allowed(package: str) -> None:
    importing = {
        file.parent.relative_to(ROOT).as_posix()
        for file in (ROOT / "models").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module]
        )
        if name is not None and name.split(".")[0] == package
    }
    assert importing == IMPORTERS[package]


def test_the_models_load_no_input_output_and_no_randomness(loaded: set[str]) -> None:
    assert loaded & IMPURE == set()


IMPURE_SOURCES = [
    "import time\n",
    "from time import monotonic\n",
    "import random\n",
    "import logging\n",
    "import asyncio\n",
    "import aiokafka.errors\n",
    "from confluent_kafka import Consumer\n",
    "import faust\n",
    "import msgspec\n",
    "import pyspark.sql\n",
    "from prometheus_client import Gauge\n",
    "import aiohttp\n",
    "import caughtup.agents\n",
    "from caughtup.agents.settings import Settings\n",
    "from caughtup import agents\n",
    "from caughtup.pipelines import schema\n",
    "from caughtup.demo import cluster\n",
    "import datetime\n\nNOW = datetime.datetime.now()\n",
    "from datetime import datetime\n\nNOW = datetime.now()\n",
    "def late():\n    import time\n",
    "from models import lag\n",
]
PURE_SOURCE = "import struct\nfrom datetime import UTC\nfrom caughtup.models.ids import TaskId\n"
SECOND_NAME = "import models.ids\n"
ONE_NAME = "import time\nimport caughtup.models\n"
MODELS = ["models", "models/wire", "models/records"]
PURE = ["models", "models/assignors"]
OTHERS = ["agents", "pipelines", "demo", "tests"]
#: What ruff is asked about: folders and what a new file there has in it.
ASKED = [
    *((folder, source) for folder in MODELS for source in IMPURE_SOURCES),
    *((folder, PURE_SOURCE) for folder in PURE),
    *((folder, source) for folder in OTHERS for source in (SECOND_NAME, ONE_NAME)),
]


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], list[str]]:
    """Return the codes of what ruff finds, by folder and source, in a copy of its configuration."""
    copy = tmp_path_factory.mktemp("checkout").resolve()
    tops = {folder.split("/")[0] for folder, _ in ASKED}
    own = [one for top in sorted(tops) for one in (ROOT / top).rglob("*ruff.toml")]
    for configuration in (ROOT / "pyproject.toml", *own):
        place = copy / configuration.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(configuration, place)
    asked = {}
    for number, (folder, source) in enumerate(ASKED):
        file = copy / folder / f"new_{number}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source)
        asked[file] = (folder, source)
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--output-format=json", "--select=TID251", "."],
        cwd=copy,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    codes: dict[tuple[str, str], list[str]] = {one: [] for one in asked.values()}
    for found in json.loads(done.stdout):
        codes[asked[Path(found["filename"])]].append(found["code"])
    return codes


@pytest.mark.parametrize("source", IMPURE_SOURCES)
@pytest.mark.parametrize("folder", MODELS)
def test_ruff_refuses_an_impure_import_anywhere_in_the_models(
    source: str, folder: str, refused: dict[tuple[str, str], list[str]]
) -> None:
    assert refused[folder, source] == ["TID251"]


@pytest.mark.parametrize("folder", PURE)
def test_ruff_lets_the_models_import_the_standard_library_and_themselves(
    folder: str, refused: dict[tuple[str, str], list[str]]
) -> None:
    assert refused[folder, PURE_SOURCE] == []


def test_ruff_refuses_the_second_name_of_a_package_everywhere(
    refused: dict[tuple[str, str], list[str]],
) -> None:
    """``models`` and ``caughtup.models`` would be two modules with two TaskIds."""
    for folder in OTHERS:
        assert refused[folder, SECOND_NAME] == ["TID251"]
        assert refused[folder, ONE_NAME] == []
