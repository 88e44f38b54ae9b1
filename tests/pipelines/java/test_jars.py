"""Fetching jars: whole or not at all, once, however many ask."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

from caughtup.models.errors import CaughtupError
from caughtup.pipelines.java import jars
from caughtup.pipelines.java.jars import Coordinate, JarsUnavailable, module_descriptor

# Small, and with one dependency.
BINDING = "org.slf4j:slf4j-simple:1.7.36"
BINDING_JARS = ["slf4j-api-1.7.36.jar", "slf4j-simple-1.7.36.jar"]
FETCH = (
    f"from caughtup.pipelines.java import jars; print(jars.fetch_jars('binding', ['{BINDING}']))"
)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CAUGHTUP_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.glob("*.jar"))


@pytest.mark.heavy
def test_callers_at_the_same_time_get_one_whole_directory(cache: Path) -> None:
    callers = [
        subprocess.Popen(
            [sys.executable, "-c", FETCH], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(3)
    ]
    printed = [caller.communicate(timeout=120) for caller in callers]
    assert [caller.returncode for caller in callers] == [0, 0, 0]
    (directory,) = {Path(out.decode().strip()) for out, _ in printed}
    assert directory.parent == cache
    assert names(directory) == BINDING_JARS
    assert all(zipfile.ZipFile(directory / jar).testzip() is None for jar in BINDING_JARS)
    assert sum(b"Fetching the binding jars" in err for _, err in printed) == 1
    assert sorted(path.suffix for path in cache.iterdir()) == ["", ".lock"]


@pytest.mark.heavy
def test_a_directory_that_lacks_something_is_fetched_anew(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = jars.fetch_jars("binding", [BINDING])
    capsys.readouterr()
    assert jars.fetch_jars("binding", [BINDING]) == directory
    assert capsys.readouterr().err == ""
    whole = (directory / BINDING_JARS[0]).read_bytes()
    (directory / BINDING_JARS[0]).write_bytes(whole[:100])
    assert jars.fetch_jars("binding", [BINDING]) == directory
    assert (directory / BINDING_JARS[0]).read_bytes() == whole
    (directory / "complete.json").write_text("[")
    (directory / BINDING_JARS[1]).unlink()
    assert jars.fetch_jars("binding", [BINDING]) == directory
    assert names(directory) == BINDING_JARS
    assert sorted(json.loads((directory / "complete.json").read_text())) == BINDING_JARS


@pytest.mark.heavy
def test_what_is_left_out_stays_out_and_has_a_directory_of_its_own(cache: Path) -> None:
    everything = jars.fetch_jars("binding", [BINDING])
    less = jars.fetch_jars("binding", [BINDING], without=["org.slf4j:slf4j-api"])
    assert less != everything
    assert names(less) == BINDING_JARS[1:]


def test_an_unknown_revision_is_refused_in_one_line_and_leaves_no_directory(cache: Path) -> None:
    with pytest.raises(JarsUnavailable, match=r"slf4j-simple;0\.0\.0") as refused:
        jars.fetch_jars("binding", ["org.slf4j:slf4j-simple:0.0.0"])
    assert refused.value.message.startswith(
        "cannot fetch org.slf4j:slf4j-simple:0.0.0: module not found"
    )
    assert "\n" not in refused.value.message
    assert not [path for path in cache.iterdir() if not path.suffix]


def test_without_a_network_the_cause_is_named(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Port 9 of loopback, where nothing listens, as the way out.
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=9")
    with pytest.raises(JarsUnavailable, match="Connection refused"):
        jars.fetch_jars("binding", [BINDING])


def test_a_cache_that_cannot_be_written_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAUGHTUP_CACHE", "/proc/caughtup")
    with pytest.raises(CaughtupError, match=r"cannot write /proc/caughtup: .*CAUGHTUP_CACHE"):
        jars.fetch_jars("binding", [BINDING])


@pytest.mark.parametrize("text", ["", "a:b", "a:b:c:d", "a::c"])
def test_what_is_no_coordinate_is_refused(text: str) -> None:
    with pytest.raises(CaughtupError, match="bad_coordinate"):
        Coordinate.parse(text)


def test_the_module_descriptor_names_exact_revisions_and_exclusions() -> None:
    root = ElementTree.fromstring(
        module_descriptor([Coordinate.parse(BINDING)], ["org.slf4j", "a:b"])
    )
    (dependency,) = root.iter("dependency")
    assert (dependency.get("org"), dependency.get("name"), dependency.get("rev")) == tuple(
        BINDING.split(":")
    )
    excluded = [(left_out.get("org"), left_out.get("module")) for left_out in root.iter("exclude")]
    assert excluded == [("org.slf4j", "*"), ("a", "b")]


def test_kafkas_and_sparks_jars_are_there_with_what_they_need() -> None:
    kafka = names(jars.ensure_jars())
    assert {f"kafka-streams-{jars.KAFKA_VERSION}.jar", "ecj-3.38.0.jar"} <= set(kafka)
    assert [name for name in kafka if name.startswith("rocksdbjni-")]
    assert jars.classpath().count(":") == len(kafka) - 1
    spark = names(jars.ensure_spark_jars())
    _, name, revision = jars.spark_connector().split(":")
    assert f"{name}-{revision}.jar" in spark
    shipped = {path.name for path in jars.pyspark_jars().glob("*.jar")}
    assert shipped.isdisjoint(spark)
