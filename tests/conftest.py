"""How tests are dealt to the workers of ``make test``, named, and which scenarios a day holds."""

from __future__ import annotations

import gc
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from caughtup.pipelines.java.find import QUICK_START
from tests.support.sizes import SCENARIOS_A_DAY, daily

#: What takes a minute to start, so that one worker has it alone, until its tests are over.
_SHARED = "scene"
#: A cluster, which takes 7 s of a processor to start: files that share one are dealt in so many
#: parts, each to one worker, which starts one cluster for it.
_SHARED_CLUSTER = "shared_cluster"
_CLUSTERS = 3
#: The marks of tests that are left out by default: see pyproject.toml.
_LEFT_OUT = ("thorough", "unsteady")
#: A test that may take longer than this by its own word takes long: it begins early.
_LONG_SECONDS = 300
#: Folders whose tests wait more than they compute. Between two such files come four others, as long
#: as there are any, so that the processors have something to do meanwhile.
_WAITING = ("integration", "pipelines")
_OTHERS_BETWEEN = 4

# Before there are workers, since all of them have to find the same tests.
_today = datetime.now(UTC).toordinal()
os.environ.setdefault("ORACLE_FIRST_SEED", str(_today * SCENARIOS_A_DAY))

# What an example takes says how busy the machine is, not whether the code is right.
settings.register_profile(
    "unhurried",
    max_examples=daily(25, 100),
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("unhurried")

_ROOT = Path(__file__).parents[1]
#: What Python finds first in executors that are processes of their own: another release of PySpark,
#: where one is in front of the installed one here.
_FIRST = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
_PATH = os.pathsep.join(dict.fromkeys([*_FIRST, str(_ROOT)]))
#: The Python workers of Spark begin here, wherever a test's command runs; no option has a space.
_WORKERS = (
    "-Dspark.python.daemon.module=tests.support.pipelines.python_workers",
    f"-Dspark.executorEnv.PYTHONPATH={_PATH}",
)
_OPTIONS = QUICK_START if " " in _PATH else (*QUICK_START, *_WORKERS)

# What Spark's JVMs are told: a test's is over before compiling it for speed has paid.
os.environ.setdefault("SPARK_SUBMIT_OPTS", " ".join(_OPTIONS))
os.environ.setdefault("SPARK_LAUNCHER_OPTS", " ".join(QUICK_START))

#: What a parameter may add to a test's name, which goes to every worker and stands in every report.
_NAME_CHARACTERS = 200


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a parameter by its size where it is long: some have megabytes."""
    if isinstance(val, str | bytes) and len(val) > _NAME_CHARACTERS:
        return f"{argname} of {len(val)}"
    return None


def pytest_report_header() -> str:
    """Say which scenarios are held against the jars today."""
    return f"generated scenarios from ORACLE_FIRST_SEED={os.environ['ORACLE_FIRST_SEED']}"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep together what is in one file, or shares what is slow to start; the longest first.

    First, since xdist writes the groups into the names of tests in this same hook.
    """
    shared = _files_with(_SHARED, items)
    groups = {
        file: f"{_SHARED_CLUSTER} {number % _CLUSTERS}"
        for number, file in enumerate(_files_with(_SHARED_CLUSTER, items))
    } | dict.fromkeys(shared, _SHARED)
    long = {str(i.path) for i in items if _seconds(i) > _LONG_SECONDS}
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            file = str(item.path)
            item.add_marker(pytest.mark.xdist_group(groups.get(file, file)))

    waiting: dict[str, int] = {}
    others: dict[str, int] = {}
    for item in items:
        of = waiting if any(name in item.path.parts for name in _WAITING) else others
        of.setdefault(str(item.path), len(of))

    def rank(item: pytest.Item) -> tuple[bool, bool, bool, float]:
        file = str(item.path)
        place = waiting[file] if file in waiting else (others[file] + 0.5) / _OTHERS_BETWEEN
        return file not in shared, not _is_of_spark(item), file not in long, place

    items.sort(key=rank)  # stable: within a rank as they were found


def pytest_collection() -> None:
    """Search for no garbage while tests are imported, which makes hardly any."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Take what was collected out of the garbage collector's sight: it stays for the session.

    Afterwards it searches less often than by default: that took a thirtieth of the tests' time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
    gc.enable()


def _files_with(fixture: str, items: list[pytest.Item]) -> list[str]:
    """Return the files with tests that need a fixture and have no group of their own.

    Those of which all tests are left out by default come last, so that dealing them in turn deals
    the others in turn too.
    """
    found = [
        item
        for item in items
        if fixture in getattr(item, "fixturenames", ())
        and item.get_closest_marker("xdist_group") is None
    ]
    found.sort(key=lambda item: any(map(item.get_closest_marker, _LEFT_OUT)))
    return list(dict.fromkeys(str(item.path) for item in found))


def _is_of_spark(item: pytest.Item) -> bool:
    """Return whether a test starts Spark: two at once would have both processors to themselves."""
    group = item.get_closest_marker("xdist_group")
    return group is not None and group.args == ("spark",)


def _seconds(item: pytest.Item) -> float:
    marker = item.get_closest_marker("timeout")
    return float(marker.args[0]) if marker is not None and marker.args else 0.0
