"""The unit under a real systemd: installed as the documents say, started, killed, stopped."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.processes.children import free_ports
from tests.observability.repository import OPERATING
from tests.support.booted import Machine, bootable, missing
from tests.support.images import Builder, Image
from tests.support.service import wait_for

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(1500)]

#: The steps of the documents, but for those that make the environment and the settings.
STEPS = re.compile(
    r"^(?:/opt/caughtup/bin/caughtup files|install -D) .+?(?= {2,}#|$)", re.MULTILINE
)


@pytest.fixture(scope="module")
def machine(
    builder: Builder,
    service_image: Image,
    images_cluster: EmbeddedCluster,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Machine]:
    if (reason := missing()) is not None:
        pytest.skip(reason)
    tree = tmp_path_factory.mktemp("machine") / "tree"
    bootable(builder.debian, tree)
    subprocess.run(["cp", "-a", service_image.root / "opt/caughtup", tree / "opt/"], check=True)
    machine = Machine(tree, images_cluster.processes)
    try:
        yield machine
    finally:
        machine.power_off()
        shutil.rmtree(tree)


def is_ready(port: int) -> bool:
    try:
        return urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=5).status == 200
    except (urllib.error.URLError, ConnectionError):
        return False


def test_it_starts_as_the_documents_say_survives_a_kill_and_stops(
    machine: Machine, images_cluster: EmbeddedCluster
) -> None:
    port = free_ports(1)[0]
    settings = {
        "bootstrap_servers": images_cluster.bootstrap_servers,
        "web_port": port,
        "application_id": f"unit-{port}",
        "topic_prefix": f"unit-{port}-",
    }
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    (machine.tree / "root/caughtup.toml").write_text("\n".join(lines) + "\n")
    steps = STEPS.findall(OPERATING.read_text())
    assert len(steps) == 4
    for step in steps:
        machine.asked("sh", "-ec", f"cd /root; {step}")
    began = time.monotonic()
    machine.asked("systemctl", "enable", "--now", "caughtup")
    wait_for("the service is ready", lambda: is_ready(port), 120)
    print(f"ready {time.monotonic() - began:.1f} s after systemctl enable --now")

    assert machine.show("caughtup", "ActiveState") == "active"
    status = machine.asked("cat", f"/proc/{machine.show('caughtup', 'MainPID')}/status")
    user = machine.asked("id", "-u", "caughtup")
    assert re.search(rf"^Uid:\s+{user}\s", status, re.MULTILINE)
    assert re.search(r"^CapEff:\s+0+$", status, re.MULTILINE)
    assert re.search(r"^NoNewPrivs:\s+1$", status, re.MULTILINE)
    assert re.search(r"^Seccomp:\s+2$", status, re.MULTILINE)

    killed = machine.show("caughtup", "MainPID")
    machine.asked("systemctl", "kill", "--signal=SIGKILL", "caughtup")
    wait_for("it is started again", lambda: machine.show("caughtup", "NRestarts") == "1")
    wait_for("it is ready again", lambda: is_ready(port), 120)
    assert machine.show("caughtup", "MainPID") != killed

    began = time.monotonic()
    machine.asked("systemctl", "stop", "caughtup")
    assert time.monotonic() - began < 15
    assert machine.show("caughtup", "Result") == "success"
    assert machine.show("caughtup", "ExecMainStatus") == "0"
    said = machine.asked("journalctl", "--unit=caughtup", "--no-pager", "--output=cat")
    assert "the page: http://127.0.0.1" in said
    assert "Traceback" not in said


def test_wrong_settings_are_in_the_journal_and_it_is_tried_again(machine: Machine) -> None:
    path = Path("etc/caughtup/caughtup.toml")
    (machine.tree / path).write_text("web_port = 'http'\n")
    machine.asked("systemctl", "start", "--no-block", "caughtup")
    wait_for("it is tried again", lambda: int(machine.show("caughtup", "NRestarts")) > 0)
    said = machine.asked("journalctl", "--unit=caughtup", "--no-pager", "--output=cat")
    assert "setting web_port" in said
    machine.asked("systemctl", "stop", "caughtup")
