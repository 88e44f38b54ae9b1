"""A state file that can't be had: the service says so in one line, and ends."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.processes.children import free_ports
from tests.support.service import Ran, Service, caughtup, settings_file


def run(cluster: EmbeddedCluster, path: Path, directory: Path) -> Ran:
    """Run a service that is to end by itself."""
    settings = settings_file(
        directory,
        cluster.bootstrap_servers,
        {},
        source="ask",
        own_topics=False,
        state_file=str(path),
        web_port=free_ports(1)[0],
    )
    return caughtup("run", "--config", settings, directory=directory)


def _of_another_cluster(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("create table about (cluster text)")
        database.execute("insert into about values ('another')")


@pytest.mark.parametrize(
    ("name", "make", "said"),
    [
        ("absent/state.db", lambda _: None, "No such file or directory"),
        ("state.db", lambda path: path.mkdir(), "Is a directory"),
        ("state.db", lambda path: path.write_text("notes\n" * 100), "is not a file of caughtup's"),
        ("state.db", _of_another_cluster, "is about the cluster another, and this is"),
    ],
    ids=["no folder", "folder", "notes", "another cluster"],
)
def test_a_file_that_cannot_be_had(
    cluster: EmbeddedCluster, tmp_path: Path, name: str, make: Callable[[Path], object], said: str
) -> None:
    make(tmp_path / name)
    ran = run(cluster, tmp_path / name, tmp_path)
    assert ran.code == 1
    (line,) = [one for one in ran.err.splitlines() if one.startswith("caughtup: ")]
    assert line.startswith("caughtup: setting state_file: ")
    assert said in line
    assert "Traceback" not in ran.err + ran.out


def test_two_services_with_one_file(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    first = Service(cluster, source="ask", own_topics=False, state_file=str(path))
    with first:
        ran = run(cluster, path, tmp_path)
        assert ran.code == 1
        assert "is in use by another process" in ran.err
        assert first.ready()
        first.kill()
    with Service(cluster, source="ask", own_topics=False, state_file=str(path)) as second:
        assert second.ready(), "the lock ends with the process"
