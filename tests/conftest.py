"""Assign tests to the workers of ``make test``, shorten their names, choose a day's scenarios."""

from __future__ import annotations

import gc
import os
from collections.abc import Generator
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
_CLUSTERS = 2
#: The marks of tests that are left out by default: see pyproject.toml.
_LEFT_OUT = ("heavy", "thorough", "unsteady")
#: ``--part today`` is one of so many parts, another each day.
_PARTS = 3
#: A test that may take longer than this by its own word takes long: it begins early.
_LONG_SECONDS = 300
#: Folders whose tests wait more than they compute. Their files are spread over the first nine tenths
#: of the others, so that the processors compute while these wait; of the last tenth too little would
#: be left to compute.
_WAITING = ("integration", "pipelines")
_EVENLY = 0.9

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
#: Executors that are processes of their own get this PYTHONPATH, too, so that they import the same
#: release of PySpark as the tests.
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


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--part``, for CI, which has time for some of the heavy tests."""
    parser.addoption(
        "--part",
        metavar="K/N",
        type=part,
        help="only the K-th of N parts of what is selected, or today's",
    )


def part(text: str) -> tuple[int, int]:
    """Return K and N of ``K/N``, or of ``today``; raise ValueError. Errors say this function's name."""
    if text == "today":
        return _today % _PARTS + 1, _PARTS
    number, parts = map(int, text.split("/"))
    if not 1 <= number <= parts:
        raise ValueError(text)
    return number, parts


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a parameter by its size where it is long: some have megabytes."""
    if isinstance(val, str | bytes) and len(val) > _NAME_CHARACTERS:
        return f"{argname} of {len(val)}"
    return None


def pytest_report_header() -> str:
    """Say which scenarios are held against the jars today."""
    return f"generated scenarios from ORACLE_FIRST_SEED={os.environ['ORACLE_FIRST_SEED']}"


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None]:
    """Keep together what is in one file, or shares what is slow to start; the longest first.

    The groups are made before xdist writes them into the names of tests, parts and the order once
    all that is not to be run is gone.
    """
    _group_items(items)
    yield
    if config.option.part is not None:
        _keep_part(config, items)
    _order(items)


def _group_items(items: list[pytest.Item]) -> None:
    groups = {
        file: f"{_SHARED_CLUSTER} {number % _CLUSTERS}"
        for number, file in enumerate(_files_with(_SHARED_CLUSTER, items))
    } | dict.fromkeys(_files_with(_SHARED, items), _SHARED)
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            file = str(item.path)
            item.add_marker(pytest.mark.xdist_group(groups.get(file, file)))


def _order(items: list[pytest.Item]) -> None:
    long = {str(i.path) for i in items if _seconds(i) > _LONG_SECONDS}
    waiting: dict[str, int] = {}
    others: dict[str, int] = {}
    for item in items:
        of = waiting if any(name in item.path.parts for name in _WAITING) else others
        of.setdefault(str(item.path), len(of))
    between = max(1.0, _EVENLY * len(others) / max(1, len(waiting)))

    def rank(item: pytest.Item) -> tuple[bool, bool, bool, float]:
        file, group = str(item.path), _group(item)
        place = waiting[file] if file in waiting else (others[file] + 0.5) / between
        # Spark's tests are one group: two sessions at once would have both processors to themselves.
        return group != _SHARED, group != "spark", file not in long, place

    items.sort(key=rank)  # stable: within a rank as they were found


def _keep_part(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests of other parts; what shares a cluster or a JVM is in one part."""
    number, parts = config.option.part
    mine = set(sorted({_group(item) for item in items})[number - 1 :: parts])
    config.hook.pytest_deselected(items=[item for item in items if _group(item) not in mine])
    items[:] = [item for item in items if _group(item) in mine]


def _group(item: pytest.Item) -> str:
    marker = item.get_closest_marker("xdist_group")
    assert marker is not None
    return str(marker.args[0])


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


def _seconds(item: pytest.Item) -> float:
    marker = item.get_closest_marker("timeout")
    return float(marker.args[0]) if marker is not None and marker.args else 0.0
