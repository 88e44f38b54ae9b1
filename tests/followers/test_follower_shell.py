"""The class that applications configure: it answers at once, and whatever happens to it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

from caughtup.followers.kafka_streams import jar
from caughtup.followers.kafka_streams.jar import build_jar
from caughtup.models.errors import CaughtupError
from tests.followers.generated_questions import generate_question
from tests.support.oracles import Oracle

ROOT = Path(__file__).parents[2]


def scenario(seed: int) -> dict[str, Any]:
    return generate_question(seed)["scenario"]


def places(scenario: dict[str, Any]) -> dict[str, str]:
    """Say where each task ran that one client only ran."""
    seen: dict[str, set[str]] = {}
    for process, client in scenario["clients"].items():
        for task in client["previous_active"]:
            seen.setdefault(task, set()).add(process)
    return {task: next(iter(had)) for task, had in seen.items() if len(had) == 1}


FAILURES = ("without lags", "without memory", "without stack")


@pytest.mark.parametrize("how", ["with lags", *FAILURES])
def test_without_a_broker_everything_stays_where_it_is(follower_oracle: Oracle, how: str) -> None:
    """There is no Kafka; and where lags cannot be had either, Kafka's own assignor keeps it."""
    for seed in range(40):
        asked = scenario(seed)
        answer = follower_oracle.ask({"assign": how, "scenario": asked})
        assert answer["error"] == "NONE"
        assert answer["follow_ups"] == 1
        given = {
            task: process
            for process, tasks in answer["clients"].items()
            for task, kind in tasks.items()
            if kind == "ACTIVE"
        }
        assert given.keys() == asked["tasks"].keys()
        for task, process in places(asked).items():
            assert given[task] == process, f"seed {seed}, {task}"


def test_where_nothing_can_be_decided_it_is_tried_ever_later(
    follower_oracle: Oracle,
) -> None:
    def after_seconds(how: str) -> float:
        answer = follower_oracle.ask({"assign": how, "scenario": scenario(0)})
        return float(answer["follow_up_at_ms"]) / 1000 - time.time()

    for _ in range(2):
        assert 3 < after_seconds("with lags") <= 5
        for seconds in (5, 10, 20, 40, 80, 160, 320, 600, 600):
            assert seconds - 2 < after_seconds("without lags") <= seconds


def test_the_jar_has_the_two_classes_that_configs_name(follower_jar: Path) -> None:
    with zipfile.ZipFile(follower_jar) as opened:
        names = opened.namelist()
        assert opened.testzip() is None
    assert "caughtup/FollowingTaskAssignor.class" in names
    assert "caughtup/PositionReporter.class" in names
    assert names[0] == "META-INF/MANIFEST.MF"


@pytest.mark.heavy
def test_the_same_sources_make_the_same_jar(follower_jar: Path, tmp_path: Path) -> None:
    assert build_jar(tmp_path / "again.jar").read_bytes() == follower_jar.read_bytes()


def test_the_classes_run_on_the_oldest_java_that_kafka_streams_does(follower_jar: Path) -> None:
    with zipfile.ZipFile(follower_jar) as opened:
        for name in opened.namelist():
            if name.endswith(".class"):
                assert int.from_bytes(opened.read(name)[6:8], "big") == 44 + jar.RELEASE


def test_a_source_that_does_not_compile_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "Broken.java").write_text("package caughtup; class Broken { int a = b; }")
    monkeypatch.setattr(jar, "SOURCES", tmp_path)
    with pytest.raises(CaughtupError, match=r"not compiled: .*Broken\.java"):
        build_jar(tmp_path / "broken.jar")


@pytest.mark.heavy
def test_a_place_that_cannot_be_written_is_named_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    wanted = tmp_path / "file" / "follower.jar"
    ran = subprocess.run(
        [sys.executable, "-m", "caughtup.followers.kafka_streams.jar", str(wanted)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 1
    assert ran.stderr.startswith(f"caughtup: cannot write {wanted}")
    assert ran.stderr.count("\n") == 1
