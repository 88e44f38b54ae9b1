"""What other tools are measured by: the requests that a broker counts, and a tool that does not start."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from caughtup.bench.other_tools import (
    BrokerRequests,
    OtherTool,
    RunningTool,
    klag_tool,
    kminion_tool,
)
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.processes.children import Processes
from caughtup.models.errors import CaughtupError

SERVER = """
import functools, http.server, os
handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=os.environ["AT"])
http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), handler).serve_forever()
"""


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("jcmd") is None, reason="no JDK: jcmd is missing")
def test_a_broker_counts_the_requests_of_each_api() -> None:
    with EmbeddedCluster() as cluster:
        requests = BrokerRequests(cluster)
        before = requests.count()
        admin = AdminClient(cluster.client_config())
        for _ in range(5):
            admin.list_consumer_groups(request_timeout=30).result()
        after = requests.count()
    assert after["ListGroups"] - before.get("ListGroups", 0) == 5
    assert after.get("OffsetFetch", 0) == before.get("OffsetFetch", 0)


def test_a_tool_is_configured_by_its_environment() -> None:
    found = kminion_tool(Path("/opt/kminion"), "one:9092,two:9092", reads_log=True)
    assert found.command == ("/opt/kminion",)
    assert found.environment["KAFKA_BROKERS"] == "one:9092,two:9092"
    assert found.environment["MINION_CONSUMERGROUPS_SCRAPEMODE"] == "offsetsTopic"
    other = klag_tool("java -cp 'a b' Main", "one:9092", 2.5)
    assert other.command == ("java", "-cp", "a b", "Main")
    assert other.environment["METRICS_INTERVAL_MS"] == "2500"


def test_a_tool_that_ends_is_named_with_its_error() -> None:
    program = (sys.executable, "-c", "import sys; sys.exit('ERROR no such setting')")
    tool = OtherTool("other, its mode", program, {}, "PORT", "ready")
    with Processes() as processes, pytest.raises(CaughtupError) as raised:
        RunningTool(tool, processes)
    assert raised.value.message == "other, its mode was not ready: no such setting"


def test_metrics_are_read_once_it_is_ready(tmp_path: Path) -> None:
    (tmp_path / "ready").write_text("yes")
    (tmp_path / "metrics").write_text(
        "# HELP a b\nkminion_exporter_offset_consumer_records_consumed_total 1.25e+06\n"
    )
    program = (sys.executable, "-c", SERVER)
    with Processes() as processes:
        running = RunningTool(
            OtherTool("other", program, {"AT": str(tmp_path)}, "PORT", "ready"), processes
        )
        assert running.records_read() == 1_250_000
        assert running.ready_seconds > 0
