"""Commands that ask a real service: what they say at once, where one look says unknown."""

from __future__ import annotations

import sys
import uuid
from pathlib import Path
from typing import Any

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce
from tests.integration.conftest import MakeTopic
from tests.support.service import Ran, Service, caughtup, commit, wait_for
from tests.support.terminal import Terminal

TOP = [sys.executable, "-m", "caughtup.agents", "top"]


def partition_line(ran: Ran, group: str) -> dict[str, Any] | None:
    """Return the line of the group's only partition, once it is there."""
    found = [line for line in ran.lines if line["group"] == group and line["kind"] == "partition"]
    return found[0] if ran.code == 0 and found else None


def test_a_service_answers_with_the_lines_of_a_look_and_what_it_knows_beside(
    cluster: EmbeddedCluster, service: Service, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic, group = make_topic("words"), f"readers-{uuid.uuid4().hex[:8]}"
    produce(cluster, topic, 10)
    commit(cluster, group, topic, 10)
    asked = ["lag", "--service", service.url, "--format", "json", group]

    def verdict() -> dict[str, Any] | None:
        line = partition_line(caughtup(*asked, directory=tmp_path), group)
        return line if line is not None and line.get("verdict") == "ok" else None

    known = wait_for("the service has a verdict", verdict)
    looked = partition_line(
        caughtup(
            "lag", "-b", cluster.bootstrap_servers, "--format", "json", group, directory=tmp_path
        ),
        group,
    )
    assert looked is not None
    for field in ("group", "topic", "partition", "committed", "end_offset", "lag", "has_commit"):
        assert known[field] == looked[field]
    ran = caughtup("lag", "--service", service.url, "--lagging", group, directory=tmp_path)
    assert (ran.code, ran.out) == (3, "")

    def row() -> list[list[str]]:
        ran = caughtup("lag", "--service", service.url, directory=tmp_path)
        assert (ran.code, ran.err) == (0, "")
        return [line.split()[:3] for line in ran.out.splitlines() if group in line]

    # The group's verdict may come a look later than its partition's.
    wait_for("the table has its verdict", lambda: row() == [[group, "ok", "0"]])


def test_a_token_goes_from_its_file_and_is_on_no_command_line(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text(uuid.uuid4().hex)
    with Service(cluster, web_token_file=str(token)) as closed:
        ran = caughtup("reassignments", "--service", closed.url, directory=tmp_path)
        assert "requires its token: give --token-file FILE" in ran.message
        ran = caughtup(
            "reassignments", "--service", closed.url, "--token-file", token, directory=tmp_path
        )
        assert (ran.code, ran.out) == (3, "")


def test_a_terminal_shows_groups_of_a_service_and_of_looks(
    cluster: EmbeddedCluster, service: Service, make_topic: MakeTopic
) -> None:
    topic, group = make_topic("words"), f"readers-{uuid.uuid4().hex[:8]}"
    produce(cluster, topic, 10)
    commit(cluster, group, topic, 4)
    for source, lag in (
        (["--service", service.url], 9),
        (["-b", cluster.bootstrap_servers, "--every", "1"], 12),
    ):
        with Terminal([*TOP, *source], columns=120, lines=50) as terminal:
            terminal.wait_for("by state")
            terminal.press("/")
            terminal.wait_for("words that a line has")
            terminal.press(f"{group}\r")
            terminal.wait_for("1 of ")
            before = len(terminal.text)
            terminal.press("\r")
            terminal.wait_for(topic, since=before)
            produce(cluster, topic, 3)
            terminal.wait_for(f" {lag}  ", since=before)
            terminal.press("q")
            assert terminal.ended() == 0
            assert terminal.modes == terminal.before
            assert not {"Traceback", "Unclosed", "Error"} & {*terminal.text.split()}
