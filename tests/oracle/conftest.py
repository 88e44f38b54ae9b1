"""The published Kafka jars as a yardstick: a gateway to call into, and assignors behind a pipe."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from caughtup.demo.jars import classpath
from caughtup.demo.java import find_java

JAVA_SOURCES = sorted((Path(__file__).parent / "java").glob("*.java"))
COMPILER = "org.eclipse.jdt.internal.compiler.batch.Main"
QUIET = "-Dorg.apache.logging.log4j.level=OFF"


@pytest.fixture(scope="session")
def jvm() -> Iterator[Any]:
    """Java with Kafka's jars on its class path, to be called through py4j."""
    port, token, process = launch_gateway(
        classpath=classpath(),
        java_path=str(find_java().program),
        javaopts=[QUIET],
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


class AssignorOracle:
    """Kafka's own assignor in a JVM of its own: a scenario in, the published jar's decision out."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def decide(self, scenario: dict[str, Any]) -> dict[str, Any]:
        """Return what the jar decides: probing_rebalance_needed, clients, and ms it took."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(scenario) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the oracle's JVM ended with {self._process.wait()}"
        decision: dict[str, Any] = json.loads(line)
        return decision


@pytest.fixture(scope="session")
def assignor_oracle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AssignorOracle]:
    """Kafka's HighAvailabilityTaskAssignor, compiled against and run from the published jars."""
    java = str(find_java().program)
    jars = classpath()
    classes = tmp_path_factory.mktemp("oracle-classes")
    subprocess.run(
        [java, "-cp", jars, COMPILER, "-17", "-cp", jars, "-d", str(classes), *JAVA_SOURCES],
        check=True,
    )
    command = [java, QUIET, "-cp", os.pathsep.join((jars, str(classes))), "AssignorOracle"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        yield AssignorOracle(process)
        assert process.stdin is not None
        process.stdin.close()
        process.wait(timeout=30)
