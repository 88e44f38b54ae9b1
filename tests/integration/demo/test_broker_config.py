"""Property files as Java itself reads them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from py4j.java_gateway import GatewayParameters, JavaGateway

from caughtup.demo.cluster.broker_config import properties_text
from caughtup.demo.processes.children import Processes
from caughtup.pipelines.java.find import QUICK_START, find_java
from caughtup.pipelines.java.jars import pyspark_jars
from tests.support.service import wait_for
from tests.support.sizes import daily

TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)


@pytest.fixture(scope="module")
def java() -> Iterator[Any]:
    (jar,) = pyspark_jars().glob("py4j-*.jar")
    with Processes() as processes:
        command = [
            find_java().program,
            *QUICK_START,
            "-cp",
            jar,
            "py4j.GatewayServer",
            "--enable-auth",
            "0",
        ]
        child = processes.start("gateway", command)
        wait_for("it says where it listens", lambda: child.output().count("\n") >= 2)
        port, token = child.output().split()[:2]
        gateway = JavaGateway(
            gateway_parameters=GatewayParameters(port=int(port), auth_token=token)
        )
        yield gateway.jvm.java
        gateway.shutdown()


@settings(
    max_examples=daily(60, 150),
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(values=st.lists(TEXTS, min_size=1, max_size=5))
@example(values=["\f", " x", "\ty"])  # white space, which Java skips before a value
def test_java_reads_back_every_value(java: Any, values: list[str]) -> None:
    wanted = {f"key.{number}": value for number, value in enumerate(values)}
    properties = java.util.Properties()
    properties.load(java.io.StringReader(properties_text(wanted)))
    assert {str(key): str(properties.getProperty(key)) for key in wanted} == wanted
    assert properties.size() == len(wanted)


def test_text_is_ascii_so_that_its_encoding_cannot_matter() -> None:
    assert properties_text({"password": "pässwörd 🙂"}).isascii()
