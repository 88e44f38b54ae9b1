"""The published Kafka jars as a yardstick: a gateway to call into, and assignors behind a pipe.

A test marked ``family("its name")`` holds a family of generated scenarios against the jars.
ORACLE_SCENARIOS is how many scenarios each family has (60 unless given, which several of a kind
share, or 160 that are quick), ORACLE_FIRST_SEED the seed of its first: unless given another each day, so that each day
holds other scenarios (tests/conftest.py). How many were held alike is printed by each test and,
where pytest is told to run tests/oracle, family by family at the end. ``make thorough`` holds
2,000 of each, ``make proof`` as many as it is told.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from caughtup.pipelines.java.command_lines import quick_start
from caughtup.pipelines.java.find import find_java
from caughtup.pipelines.java.jars import classpath
from tests.support.oracles import Oracle, compiled_java, running_oracle

JAVA_SOURCES = sorted((Path(__file__).parent / "java").glob("*.java"))
QUIET = "-Dorg.apache.logging.log4j.level=OFF"


def _number(variable: str, default: int, least: int) -> int:
    text = os.environ.get(variable, str(default))
    if not (text.isascii() and text.isdigit()) or int(text) < least:
        raise pytest.UsageError(f"{variable}: {text!r} is not a whole number from {least}")
    return int(text)


SCENARIOS = _number("ORACLE_SCENARIOS", 60, 1)
#: Of a family whose scenarios are decided within milliseconds.
QUICK_SCENARIOS = 160
FIRST_SEED = _number("ORACLE_FIRST_SEED", 0, 0)


def seeds_of_a_family(
    block: int = 250, *, one_of: int = 1, quick: bool = False
) -> pytest.MarkDecorator:
    """Parametrize a family's test with its ``seeds``, some hundreds at a time, each a range.

    A family that is ``one_of`` several of a kind has its share, and one whose scenarios are decided
    within milliseconds (``quick``) has more, unless told how many to have.
    """
    count = -(-SCENARIOS // one_of)
    if "ORACLE_SCENARIOS" in os.environ:
        count = SCENARIOS
    elif quick:
        count = QUICK_SCENARIOS
    end = FIRST_SEED + count
    ranges = [range(first, min(first + block, end)) for first in range(FIRST_SEED, end, block)]
    names = [f"{seeds.start}-{seeds.stop - 1}" for seeds in ranges]
    return pytest.mark.parametrize("seeds", ranges, ids=names)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "family(name): holds generated scenarios against Kafka's")


@pytest.fixture
def tally(
    request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> Callable[[int], None]:
    """Count scenarios that were held alike, for the family of the test that asks."""
    family = request.node.get_closest_marker("family").args[0]

    def count(scenarios: int) -> None:
        record_property("family", family)
        record_property("scenarios", scenarios)
        print(f"{family}: {scenarios:,} scenarios decided alike")

    return count


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    counts: Counter[str] = Counter()
    for report in terminalreporter.getreports("passed"):
        properties = dict(report.user_properties)
        if "family" in properties:
            counts[properties["family"]] += properties["scenarios"]
    if counts:
        terminalreporter.section("scenarios decided as the published jars decide them")
        for family, scenarios in sorted(counts.items()):
            terminalreporter.write_line(f"{scenarios:>9,}  {family}")
        terminalreporter.write_line(f"{counts.total():>9,}  in all, from seed {FIRST_SEED:,}")


@pytest.fixture(scope="session")
def jvm() -> Iterator[Any]:
    """Java with Kafka's jars on its class path, to be called through py4j."""
    port, token, process = launch_gateway(
        classpath=classpath(),
        java_path=str(find_java().program),
        javaopts=[*quick_start(), QUIET],
        die_on_exit=True,
        return_proc=True,
        enable_auth=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    yield gateway.jvm
    gateway.shutdown()
    # The gateway's JVM ends when its standard input does.
    process.stdin.close()
    process.wait(timeout=30)


@pytest.fixture(scope="session")
def oracle_classes() -> Path:
    """What the oracles are compiled to, against the published jars."""
    return compiled_java(JAVA_SOURCES)


@pytest.fixture(scope="session")
def assignor_oracle(oracle_classes: Path) -> Iterator[Oracle]:
    """Kafka's HighAvailabilityTaskAssignor and its siblings, run from the published jars."""
    with running_oracle("AssignorOracle", oracle_classes) as oracle:
        yield oracle


@pytest.fixture(scope="session")
def partition_assignor_oracle(oracle_classes: Path) -> Iterator[Oracle]:
    """Kafka's StreamsPartitionAssignor, run from the published jars."""
    name = "org.apache.kafka.streams.processor.internals.PartitionAssignorOracle"
    with running_oracle(name, oracle_classes) as oracle:
        yield oracle
