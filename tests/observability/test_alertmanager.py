"""Alertmanager's configuration: valid, and what it says of alerts that follow from others."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from caughtup.demo.processes.children import Processes
from tests.observability.repository import RULES, read_yaml
from tests.support.observability.alertmanager import CONFIG, DEADLINE_SECONDS, Alertmanager, Webhook
from tests.support.service import wait_for

CONFIGURATION: dict[str, Any] = read_yaml(CONFIG)
ALERTS = {rule["alert"]: rule for g in read_yaml(RULES)["groups"] for rule in g["rules"]}


@pytest.fixture(scope="module")
def webhook() -> Iterator[Webhook]:
    with Webhook() as webhook:
        yield webhook


@pytest.fixture(scope="module")
def alertmanager(
    webhook: Webhook, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Alertmanager]:
    with Processes() as processes:
        started = Alertmanager(processes, webhook.url, tmp_path_factory.mktemp("alertmanager"))
        started.wait_ready()
        yield started


def alert(name: str, /, **labels: str) -> dict[str, str]:
    return {"alertname": name, **ALERTS[name]["labels"], **labels}


def inhibitors(
    alertmanager: Alertmanager, expected: dict[str, set[str]], *alerts: dict[str, str]
) -> dict[str, set[str]]:
    """Post alerts and give, by name, what inhibits each of them, once it is as expected.

    At the deadline, as it is then: Alertmanager takes alerts in at once, and learns what they
    inhibit a little later, each in its own turn.
    """
    alertmanager.post(*alerts)
    deadline = time.monotonic() + DEADLINE_SECONDS
    while (found := _inhibitors(alertmanager, *alerts)) != expected:
        if time.monotonic() > deadline:
            break
        time.sleep(0.05)
    return found


def _inhibitors(alertmanager: Alertmanager, *alerts: dict[str, str]) -> dict[str, set[str]]:
    cluster = alerts[0]["cluster"]

    def known() -> dict[str, Any] | None:
        found = [a for a in alertmanager.alerts() if a["labels"]["cluster"] == cluster]
        judged = all(a["status"]["state"] != "unprocessed" for a in found)
        return (
            {a["fingerprint"]: a for a in found} if judged and len(found) == len(alerts) else None
        )

    found = wait_for("all alerts judged", known)
    name = {fingerprint: a["labels"]["alertname"] for fingerprint, a in found.items()}
    result: dict[str, set[str]] = {}
    for a in found.values():
        by = {name[fingerprint] for fingerprint in a["status"]["inhibitedBy"]}
        result.setdefault(a["labels"]["alertname"], set()).update(by)
    return result


def test_amtool_accepts_the_configuration(tmp_path: Path) -> None:
    program = shutil.which("amtool")
    assert program, (
        "amtool is missing: apt-get install --no-install-recommends prometheus-alertmanager"
    )

    def check(path: Path) -> subprocess.CompletedProcess[str]:
        command = [program, "check-config", str(path)]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    checked = check(CONFIG)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    broken = tmp_path / "broken.yml"
    broken.write_text(CONFIG.read_text().replace("receiver: page", "receiver: nobody"))
    assert check(broken).returncode != 0


def test_every_severity_has_a_route_of_its_own_and_messages_go_to_loopback() -> None:
    route = CONFIGURATION["route"]
    routed = {matcher for child in route["routes"] for matcher in child["matchers"]}
    assert routed == {'severity="page"'}
    assert {rule["labels"]["severity"] for rule in ALERTS.values()} == {"page", route["receiver"]}
    for receiver in CONFIGURATION["receivers"]:
        for hook in receiver["webhook_configs"]:
            assert hook["url"].startswith("http://127.0.0.1:")


def test_inhibition_names_only_alerts_that_exist() -> None:
    for rule in CONFIGURATION["inhibit_rules"]:
        for matcher in (*rule["source_matchers"], *rule["target_matchers"]):
            label, operator, value = re.fullmatch(r'(\w+)(=~?)"(.+)"', matcher).groups()  # type: ignore[union-attr]
            if label != "alertname":
                continue
            for part in re.sub(r"(\w+)\((.+)\)", _spread, value).split("|"):
                pattern = part if operator == "=~" else re.escape(part)
                assert any(re.fullmatch(pattern, name) for name in ALERTS), part


def _spread(found: re.Match[str]) -> str:
    return "|".join(f"{found[1]}{name}" for name in found[2].split("|"))


def test_while_reassignments_are_not_looked_at_nothing_is_told_of_them(
    alertmanager: Alertmanager,
) -> None:
    cluster = {"cluster": "unseen"}
    partition = {**cluster, "topic": "orders", "partition": "3"}
    expected = {
        "CaughtupSnapshotTooOld": set(),
        "CaughtupReassignmentStalled": {"CaughtupSnapshotTooOld"},
        "CaughtupReassignmentDeadTarget": {"CaughtupSnapshotTooOld"},
        "CaughtupThrottleOrphaned": {"CaughtupSnapshotTooOld"},
        "CaughtupGroupStopped": set(),
    }
    found = inhibitors(
        alertmanager,
        expected,
        alert("CaughtupSnapshotTooOld", **cluster, source="reassignments"),
        alert("CaughtupReassignmentStalled", **partition),
        alert("CaughtupReassignmentDeadTarget", **partition | {"partition": "4"}),
        alert("CaughtupThrottleOrphaned", **cluster, kind="topic", name="t"),
        alert("CaughtupGroupStopped", **cluster, group="g"),
    )
    assert found == expected


def test_groups_are_not_told_of_while_their_log_or_the_ends_are_not_read(
    alertmanager: Alertmanager,
) -> None:
    for number, source in enumerate(
        (
            alert("CaughtupReaderHangs"),
            alert("CaughtupReaderNotReady"),
            alert("CaughtupSnapshotTooOld", source="end_offsets"),
        )
    ):
        cluster = {"cluster": f"unread-{number}"}
        name = source["alertname"]
        expected = {
            name: set(),
            "CaughtupGroupStopped": {name},
            "CaughtupUnreadRecordsExpire": {name},
            "CaughtupReassignmentStalled": set(),
        }
        found = inhibitors(
            alertmanager,
            expected,
            source | cluster,
            alert("CaughtupGroupStopped", **cluster, group="g"),
            alert("CaughtupUnreadRecordsExpire", **cluster, group="g", topic="t"),
            alert("CaughtupReassignmentStalled", **cluster, topic="t", partition="0"),
        )
        assert found == expected


def test_a_broker_that_is_away_is_told_and_not_that_its_partition_is_slow(
    alertmanager: Alertmanager,
) -> None:
    cluster = {"cluster": "away"}
    expected = {
        "CaughtupReassignmentDeadTarget": set(),
        "CaughtupReassignmentSlow": {"CaughtupReassignmentDeadTarget"},
        "CaughtupReassignmentStalled": set(),  # of another partition
    }
    found = inhibitors(
        alertmanager,
        expected,
        alert("CaughtupReassignmentDeadTarget", **cluster, topic="t", partition="0"),
        alert("CaughtupReassignmentSlow", **cluster, topic="t", partition="0"),
        alert("CaughtupReassignmentStalled", **cluster, topic="t", partition="1"),
    )
    assert found == expected


def test_pages_and_tickets_reach_their_receivers(
    alertmanager: Alertmanager, webhook: Webhook
) -> None:
    cluster = {"cluster": "told"}
    alertmanager.post(
        alert("CaughtupReassignmentBlocked", **cluster, topic="t", partition="0"),
        alert("CaughtupReassignmentVanished", **cluster, outcome="vanished"),
    )

    def receivers() -> dict[str, str]:
        told = [a for a in webhook.told if a["labels"]["cluster"] == "told"]
        return {a["labels"]["alertname"]: a["receiver"] for a in told}

    wait_for("both messages", lambda: len(receivers()) == 2)
    assert receivers() == {
        "CaughtupReassignmentBlocked": "page",
        "CaughtupReassignmentVanished": "ticket",
    }
