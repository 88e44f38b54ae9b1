"""A service of which a part breaks or hangs: not ready, then gone, within ten seconds, saying why."""

from __future__ import annotations

import os
import signal
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from caughtup.demo.cluster.cluster import EmbeddedCluster
from tests.integration.conftest import MakeCluster, MakeTopic
from tests.support import breaking
from tests.support.service import Service, commit, wait_for

GONE_SECONDS = 10.0
#: Of a machine that is busy with other tests.
SLACK_SECONDS = 5.0
#: Less than the 8 s that stopping in order may take.
AT_ONCE_SECONDS = 5.0


class Broken:
    """A service that is ready and then breaks, and what was seen of it until it was gone."""

    def __init__(self, cluster: EmbeddedCluster, part: str, trigger: Path) -> None:
        file = Path(breaking.__file__)
        self.trigger = trigger
        # -P: the folder of the file is not to be looked through for modules.
        command = [sys.executable, "-P", str(file), part, str(trigger)]
        self.service = Service(cluster, command=command, lag_interval=1.0)
        #: What /ready said since, each answer once: a status and a text; 0 for no answer.
        self.said: list[tuple[int, str]] = []

    def watch(self, seconds: float = GONE_SECONDS + SLACK_SECONDS) -> int:
        """Ask /ready until the process is gone, and give its exit code."""

        def is_gone() -> bool:
            answer = self.ask()
            if answer not in self.said:
                self.said.append(answer)
            return self.service.process.exit_code is not None

        wait_for("the process is gone", is_gone, seconds)
        code = self.service.process.exit_code
        assert code is not None
        return code

    def ask(self, path: str = "ready") -> tuple[int, str]:
        try:
            with urllib.request.urlopen(self.service.url + path, timeout=1) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    @property
    def last_words(self) -> list[str]:
        """The lines that are meant for a person."""
        lines = self.service.log.splitlines()
        return [line for line in lines if line.startswith("caughtup: ")]


@pytest.fixture
def broken(
    cluster: EmbeddedCluster, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Broken]:
    it = Broken(cluster, request.param, tmp_path / "now")
    yield it
    it.service.process.kill()


def breaks(*parts: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("broken", parts, indirect=True)


def check_broken(broken: Broken, expected: str) -> None:
    broken.service.start()
    broken.trigger.touch()
    began = time.monotonic()
    assert broken.watch() == 1
    assert time.monotonic() - began < GONE_SECONDS + breaking.PATIENCE_SECONDS + SLACK_SECONDS
    (line,) = broken.last_words
    assert line.startswith(f"caughtup: the service broke: {expected}")
    statuses = [status for status, _ in broken.said]
    assert 200 not in statuses[1:], broken.said


def raised(part: str) -> str:
    return f"BrokenOnPurposeError: {part} broke for a test (breaking.py:"


@breaks("offsets", "the assessor of groups")
def test_a_part_that_fails_takes_the_service_with_it(
    broken: Broken, request: pytest.FixtureRequest
) -> None:
    check_broken(broken, raised(request.node.callspec.params["broken"]))


@pytest.mark.thorough
@breaks(*(part for part in (*breaking.AGENTS, *breaking.TASKS)))
def test_any_part_that_fails_takes_the_service_with_it(
    broken: Broken, request: pytest.FixtureRequest
) -> None:
    check_broken(broken, raised(request.node.callspec.params["broken"]))


@breaks(breaking.LOOP)
def test_an_event_loop_that_hangs_ends_the_process_with_what_it_hangs_in(broken: Broken) -> None:
    check_broken(broken, "the event loop has stood still for 2 s")
    assert "breaking.py" in broken.service.log
    assert "most recent call first" in broken.service.log
    told = [text for status, text in broken.said if status == 503]
    assert any(text.startswith("the event loop has stood still for 1 s") for text in told)


@pytest.mark.thorough
@breaks(breaking.READING)
def test_reading_offsets_that_fails_ends_the_process(broken: Broken) -> None:
    check_broken(broken, raised(breaking.READING))


@pytest.mark.thorough
@breaks(breaking.HANGING)
def test_a_reader_that_hangs_is_not_healthy_before_the_process_is_ended(broken: Broken) -> None:
    broken.service.start()
    assert broken.ask("healthz")[0] == 200
    broken.trigger.touch()

    def is_told() -> bool:
        status, text = broken.ask("healthz")
        return status == 503 and text.startswith("the reader of __consumer_offsets has stood still")

    wait_for("it is not healthy", is_told, breaking.PATIENCE_SECONDS + SLACK_SECONDS)
    broken.watch()


@pytest.mark.thorough
@breaks(breaking.HANGING, breaking.STANDING)
def test_reading_offsets_that_gets_nowhere_ends_the_process(broken: Broken) -> None:
    check_broken(broken, "the reader of __consumer_offsets has stood still for 2 s")


@pytest.mark.thorough
@breaks(breaking.OWN_HANGING)
def test_reading_own_topics_that_gets_nowhere_ends_the_process(broken: Broken) -> None:
    check_broken(broken, "the reader of own topics has stood still for 2 s")


@pytest.mark.thorough
@breaks(breaking.ANSWERING)
def test_a_publisher_that_no_longer_hears_of_its_records_ends_the_process(broken: Broken) -> None:
    check_broken(broken, "the publisher has stood still for 2 s")


@breaks(breaking.STOPPING)
def test_a_broken_service_that_cannot_stop_is_not_ready_shows_nothing_and_is_ended(
    broken: Broken, cluster: EmbeddedCluster, make_topic: MakeTopic
) -> None:
    service = broken.service
    service.start()
    group = f"{service.application_id}-readers"
    commit(cluster, group, make_topic(), 5)
    service.wait_value(5, "group_committed_offset", group=group)
    broken.trigger.touch()
    why = raised(breaking.STOPPING)

    def is_told() -> bool:
        status, text = broken.ask()
        return status == 503 and text.startswith(f"broken: {why}")

    wait_for("/ready says why", is_told)
    metrics = service.metrics()
    assert not [sample for sample in metrics if sample.name.startswith("caughtup_group_")]
    assert service.value("offsets_reader_ready") == 0
    assert broken.watch() == 1
    (line,) = broken.last_words
    assert line.startswith(f"caughtup: the service broke: {why}")
    assert line.endswith("; it did not end within 8 s")


@pytest.mark.thorough
@breaks(breaking.STOPPING_HARD, breaking.LEAVING)
def test_a_service_that_cannot_stop_is_ended_when_it_is_told_to_stop(broken: Broken) -> None:
    broken.service.start()
    broken.trigger.touch()
    time.sleep(0.5)  # a thread that never returns has begun
    os.kill(broken.service.process.pid, signal.SIGTERM)
    assert broken.watch() == 128 + signal.SIGTERM
    (line,) = broken.last_words
    assert line == "caughtup: received SIGTERM; it did not end within 8 s"


@breaks(breaking.PREPARING_LONG)
def test_a_service_that_still_prepares_is_gone_at_once(broken: Broken) -> None:
    broken.service.begin()
    wait_for("it prepares", lambda: "preparing" in broken.service.log)
    os.kill(broken.service.process.pid, signal.SIGTERM)
    assert broken.watch(AT_ONCE_SECONDS) == 128 + signal.SIGTERM


@breaks(breaking.STOPPING)
def test_a_service_that_is_told_twice_is_gone_at_once(broken: Broken) -> None:
    broken.service.start()
    for _ in range(2):
        os.kill(broken.service.process.pid, signal.SIGINT)
        time.sleep(0.5)
    assert broken.watch(AT_ONCE_SECONDS) == 128 + signal.SIGINT


@breaks(breaking.PREPARING)
def test_what_fails_before_the_start_is_one_line(broken: Broken) -> None:
    broken.service.begin()
    assert broken.watch() == 1
    assert "Traceback" not in broken.service.log
    (line,) = broken.last_words
    assert line.startswith("caughtup: the service broke: BrokenOnPurposeError: preparing raises")


@pytest.mark.thorough
def test_a_service_that_starts_ends_when_it_is_told_to(cluster: EmbeddedCluster) -> None:
    service = Service(cluster)
    service.begin()
    wait_for("it starts", lambda: "the page: " in service.log)
    began = time.monotonic()
    assert service.stop() in (0, 128 + signal.SIGTERM)
    assert time.monotonic() - began < GONE_SECONDS + SLACK_SECONDS


@pytest.mark.thorough
def test_a_service_without_any_broker_ends_when_it_is_told_to(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(nodes=1)
    service = Service(cluster)
    service.start()
    cluster.kill_node(1)
    time.sleep(3.0)  # until the clients have noticed
    began = time.monotonic()
    assert service.stop() in (0, 128 + signal.SIGTERM)
    assert time.monotonic() - began < GONE_SECONDS + SLACK_SECONDS
