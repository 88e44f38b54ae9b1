"""A real Spark cluster on loopback, with processes of its own for master, workers and executors."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

from packaging.requirements import Requirement

from caughtup.demo.processes.children import ClosedOnExit, Process, Processes, free_ports
from caughtup.pipelines.java.find import QUICK_START, find_java
from caughtup.pipelines.java.jars import cache_directory, pyspark_jars
from tests.support.service import wait_for

WORKERS = 2
SECONDS = 480.0
#: The same in local-cluster mode: only the executors are separate processes.
LOCAL_CLUSTER = f"local-cluster[{WORKERS},1,1024]"
_SPARK = pyspark_jars().parent
#: The packages that the jobs import on executors; the driver has the other dependencies.
_ON_EXECUTORS = ("deltalake", "msgspec", "numpy", "pandas", "pyarrow")


class SparkCluster(ClosedOnExit):
    """A standalone master and two workers of one core each, without caughtup installed.

    Python on the workers has only what the jobs import there; the driver's has all dependencies.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.driver_python = make_python(directory / "driver", site_packages())
        self.worker_python = make_python(directory / "worker", packages(directory / "packages"))
        self._home = linked(_SPARK, directory / "home")
        self._processes = Processes()
        (port,) = free_ports(1)
        self.master = f"spark://127.0.0.1:{port}"
        at = ("--host", "127.0.0.1", "--webui-port", "0")
        self._start("master", "master.Master", *at, "--port", str(port))
        size = ("--cores", "1", "--memory", "1g")
        for number in range(WORKERS):
            work = ("--work-dir", str(directory / "work" / str(number)), "--port", "0")
            self._start(f"worker-{number}", "worker.Worker", *at, *size, *work, self.master)

    def _start(self, name: str, program: str, *arguments: str) -> None:
        process = self._processes.start(
            name,
            [self._home / "bin" / "spark-class", f"org.apache.spark.deploy.{program}", *arguments],
            self.environment,
        )
        wait_for(f"{name} to be up", lambda: is_up(process), SECONDS)

    @property
    def environment(self) -> dict[str, str]:
        """The environment of Spark's programs."""
        return {
            "JAVA_HOME": str(find_java(newest=21).home),
            "PYSPARK_DRIVER_PYTHON": str(self.driver_python),
            "PYSPARK_PYTHON": str(self.worker_python),
            "PYTHONPATH": "",
            "SPARK_HOME": str(self._home),
            "SPARK_LOCAL_DIRS": str(self._directory / "local"),
            "SPARK_LOCAL_IP": "127.0.0.1",
            # Without the Python workers of other tests, which need what isn't there.
            "SPARK_SUBMIT_OPTS": " ".join(QUICK_START),
        }

    def submit(
        self, *arguments: str | Path, master: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run spark-submit with these arguments after the cluster's own."""
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYSPARK_", "PYTHON"))}
        at = self._directory / "submitted"
        at.mkdir(exist_ok=True)
        return subprocess.run(
            [
                str(self._home / "bin" / "spark-submit"),
                *("--master", master or self.master, "--executor-memory", "512m"),
                # Spark's default of 200 suits a cluster with as many cores.
                *("--conf", f"spark.sql.shuffle.partitions={WORKERS}"),
                # Packages are kept there between runs of the tests.
                *("--conf", f"spark.jars.ivy={cache_directory() / 'spark-submit.ivy'}"),
                *map(str, arguments),
            ],
            cwd=at,
            env=clean | self.environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    def executors(self) -> list[Path]:
        """Return the working directories of all executors so far, by the time of their start."""
        found = [
            *(self._directory / "work").glob("*/app-*/*/"),
            *(self._home / "work").glob("app-*/*/"),  # a local cluster's
        ]
        return sorted(found, key=lambda path: path.stat().st_ctime_ns)

    def close(self) -> None:
        """End every process."""
        self._processes.close()


def is_up(process: Process) -> bool:
    """Return whether the process is an active master or a registered worker."""
    said = process.output()
    assert process.exit_code is None, said
    return bool(re.search(r"I have been elected leader|Successfully registered with master", said))


def linked(directory: Path, into: Path) -> Path:
    """Make a directory of links to another one's content, into which programs may write."""
    into.mkdir(parents=True)
    for each in sorted(directory.iterdir()):
        (into / each.name).symlink_to(each)
    return into


def site_packages() -> Path:
    """Return the directory of the installed packages."""
    return Path(sysconfig.get_path("purelib"))


def packages(into: Path) -> Path:
    """Link the jobs' packages on executors and their dependencies into a directory."""
    into.mkdir(parents=True)
    wanted, taken = list(_ON_EXECUTORS), set[str]()
    while wanted:
        name = wanted.pop()
        if name in taken:
            continue
        taken.add(name)
        distribution = importlib.metadata.distribution(name)
        for top in sorted({file.parts[0] for file in distribution.files or ()}):
            if top not in ("..", "__pycache__"):
                (into / top).symlink_to(site_packages() / top)
        wanted += [
            needed.name
            for needed in map(Requirement, distribution.requires or ())
            if needed.marker is None or needed.marker.evaluate({"extra": ""})
        ]
    return into


def make_python(directory: Path, imports_from: Path) -> Path:
    """Make a Python with only a directory's packages; return its program."""
    command = [sys.executable, "-m", "venv", "--without-pip", str(directory)]
    subprocess.run(command, check=True, timeout=60)
    (packages,) = directory.glob("lib/python*/site-packages")
    # Python ignores .pth files in directories that such a file adds, so an editable install of
    # caughtup isn't found.
    (packages / "imports.pth").write_text(f"{imports_from}\n")
    return directory / "bin" / "python"
