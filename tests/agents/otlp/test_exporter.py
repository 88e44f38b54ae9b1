"""Metrics over OTLP: the same series as /metrics, and endpoints that fail or hang."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections.abc import AsyncIterator, Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

import caughtup
from caughtup.agents.otlp import exporter as module
from caughtup.agents.otlp.exporter import OtlpExporter
from caughtup.agents.process.health import Health
from caughtup.agents.settings import Settings
from caughtup.agents.web.metrics import exposition as metrics
from caughtup.agents.web.served_metrics import EXPORTERS, ServedMetrics
from caughtup.demo.processes.children import free_ports
from caughtup.models.state.cluster import ClusterState
from tests.support.observability.otlp_receiver import Receiver, Series, receiving
from tests.support.states import NOW_MS, everything

#: When an endpoint counts as hanging, in the tests of one that does: a busy machine answers later.
HANGING_SECONDS = 0.3
_made: list[OtlpExporter] = []


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "now_ms", lambda: NOW_MS)


@pytest.fixture(autouse=True)
async def no_thread_left() -> AsyncIterator[None]:
    """End the exporters of a test: a thread that tries again would log into another test."""
    _made.clear()
    yield
    for one in _made:
        await one.on_stop()
    for thread in threading.enumerate():
        if thread.name == "otlp":
            thread.join(20)
            assert not thread.is_alive()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


def ready() -> Health:
    return Health(cluster_name="Frankfurt", ready=True, reader_lag=0)


def exporter(
    url: str,
    state: ClusterState,
    health: Health | None = None,
    hanging_seconds: float = module.HANGING_SECONDS,
    **settings: object,
) -> OtlpExporter:
    health = health or ready()
    served = ServedMetrics(Settings(**settings), state, health)  # type: ignore[arg-type]
    _made.append(
        OtlpExporter(url, 1.0, served, health, state.cluster, lambda: NOW_MS, hanging_seconds)
    )
    return _made[-1]


def scraped(state: ClusterState, **settings: object) -> dict[Series, float]:
    """Return what a scrape has at the same time, without the process's own figures."""
    served = ServedMetrics(Settings(**settings), state, ready())  # type: ignore[arg-type]
    text = b"".join(served.text(openmetrics=False)).decode()
    return own(
        {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }
    )


def own(series: dict[Series, float]) -> dict[Series, float]:
    return {one: value for one, value in series.items() if not one[0].startswith("process_")}


@pytest.mark.parametrize("request_bytes", [1, 5_000, 400_000])
async def test_every_series_of_metrics_is_received_once(
    request_bytes: int, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REQUEST_BYTES", request_bytes)
    state = everything()
    assert await exporter(receiver.url, state).send_all() is None
    received = receiver.series()
    assert own(received) == scraped(everything())
    assert ("process_resident_memory_bytes", ()) in received
    assert (len(receiver.requests) > 10) == (request_bytes == 1)


@pytest.mark.parametrize(
    "name",
    ["a\\b", 'a"b', "a\nb", "a,b", "a} 5", 'x="y"', "\\n", " ", "ключ", "a\rb", "a\u2028b", "{"],
)
async def test_any_name_of_a_group_arrives_as_it_is(name: str, receiver: Receiver) -> None:
    assert await exporter(receiver.url, everything(name)).send_all() is None
    groups = {dict(labels).get("group") for _, labels in receiver.series()}
    assert name in groups
    assert own(receiver.series()) == scraped(everything(name))


async def test_the_names_of_other_exporters_are_sent_too(receiver: Receiver) -> None:
    names = tuple(EXPORTERS)
    assert await exporter(receiver.url, everything(), compat_metrics=names).send_all() is None
    assert own(receiver.series()) == scraped(everything(), compat_metrics=names)


async def test_types_and_descriptions_are_those_of_metrics(receiver: Receiver) -> None:
    assert await exporter(receiver.url, everything()).send_all() is None
    declared = {family.name: family for family in metrics.FAMILIES}
    seen = 0
    for metric in receiver.metrics():
        if (family := declared.get(metric.name)) is not None:
            assert metric.description == family.documentation
            assert (metric.WhichOneof("data") == "sum") == (family.type == "counter")
            assert metric.unit == ""
            seen += 1
    assert seen > 30


async def test_the_resource_names_the_service_and_the_cluster(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "lags")
    state = everything()
    assert await exporter(receiver.url, state).send_all() is None
    for resource in receiver.resources():
        assert resource["service.name"] == "lags"
        assert resource["service.version"] == caughtup.__version__
        assert resource["service.instance.id"].count(":") == 1
        assert resource["kafka.cluster.id"] == state.cluster
        assert resource["kafka.cluster.name"] == "Frankfurt"
        assert resource["deployment.environment.name"] == "test"


async def test_figures_that_are_infinite_or_unknown_stay_so(receiver: Receiver) -> None:
    assert await exporter(receiver.url, everything()).send_all() is None
    assert any(math.isinf(value) for value in receiver.series().values()) == any(
        math.isinf(value) for value in scraped(everything()).values()
    )


async def test_an_endpoint_that_hangs_costs_itself_only(receiver: Receiver) -> None:
    answering = threading.Event()
    receiver.answers = lambda: 200 if answering.wait(30) else 500
    sending = exporter(receiver.url, everything(), hanging_seconds=HANGING_SECONDS)
    longest, began = 0.0, time.monotonic()
    task = asyncio.create_task(sending.send_all())
    while not task.done():
        turn = time.monotonic()
        await asyncio.sleep(0.01)
        longest = max(longest, time.monotonic() - turn)
    assert "has not answered for" in (task.result() or "")
    assert time.monotonic() - began < 20
    assert longest < 2, "the event loop waited for the endpoint"
    threads = threading.active_count()
    for _ in range(3):
        assert "still has not answered" in (await sending.send_all() or "")
    assert threading.active_count() == threads
    answering.set()
    while (problem := await sending.send_all()) is not None:
        assert "answered" in problem
        assert time.monotonic() - began < 60
        await asyncio.sleep(0.05)


async def test_why_it_failed_is_logged_once_until_it_succeeds(
    receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    health = ready()
    receiver.answers = lambda: 400
    sending = exporter(receiver.url, everything(), health)
    with caplog.at_level(logging.WARNING, "caughtup"):
        async with sending:
            while health.probe_errors["otlp"] < 2:  # noqa: ASYNC110 - it happens in a thread
                await asyncio.sleep(0.05)
            (message,) = [one for one in caplog.messages if "OTLP" in one]
            assert "400" in message
            receiver.answers = lambda: 200
            while not receiver.requests:  # noqa: ASYNC110 - it happens in a thread
                await asyncio.sleep(0.05)
    assert health.unready() == []


async def test_nobody_listens() -> None:
    address = f"http://127.0.0.1:{free_ports(1)[0]}/v1/metrics"
    sending = exporter(address, everything(), hanging_seconds=HANGING_SECONDS)
    problem = await sending.send_all()
    assert problem is not None
    assert "\n" not in problem
    assert len(problem) <= 400


async def test_an_instance_that_stands_by_sends_only_what_it_has_on_metrics(
    receiver: Receiver,
) -> None:
    health = ready()
    health.standby = "another is active"
    assert await exporter(receiver.url, everything(), health).send_all() is None
    names = {name for name, _ in receiver.series()}
    assert "caughtup_active" in names
    assert not any(name.startswith("caughtup_group_") for name in names)
