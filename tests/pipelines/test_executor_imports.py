"""Spark's executors have few packages: every module of the jobs is imported with no other."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.support.pipelines.spark_cluster import make_python, packages, site_packages

ROOT = Path(__file__).parents[2]
_IMPORT = """
from importlib import import_module
from pkgutil import walk_packages

import caughtup.pipelines

for module in walk_packages(caughtup.pipelines.__path__, "caughtup.pipelines."):
    try:
        import_module(module.name)
    except ModuleNotFoundError as error:
        print(module.name, error)
"""


def test_they_import_every_module_of_the_jobs(tmp_path: Path) -> None:
    there = packages(tmp_path / "packages")
    for shipped in ("pyspark", "py4j"):  # Spark puts these on its workers' path
        (there / shipped).symlink_to(site_packages() / shipped)
    python = make_python(tmp_path / "worker", there)
    ran = subprocess.run(
        [python, "-c", _IMPORT],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert ran.stdout == ""
