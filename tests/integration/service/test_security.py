"""TLS, SASL and ACLs: what works, what is refused, and what is said about it."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AdminClient,
    ResourceType,
)

from caughtup.demo.cluster.broker_config import Tls
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.topics import create_topics
from caughtup.models.assignors.java.strings import coordinator_partition
from tests.support.groups.streams import Member, generation
from tests.support.kafka.acls import CREATE, DESCRIBE, READ, Allowed, allow, topic
from tests.support.kafka.secured import PASSWORD, SERVICE_TOPICS, run, run_all, secured_cluster
from tests.support.kafka.streams_members import PlayedApplication, topics_of
from tests.support.kafka.topics import whole_topic, write_offsets
from tests.support.service import Ran, Service, commit, wait_for

#: A refusal is known after 2 s; the rest is for a machine that is busy with other tests.
SOON_SECONDS = 45
UNFENCED = "without it, an instance that was replaced can still write"


@pytest.fixture(scope="module")
def secure(tls: Tls) -> Iterator[EmbeddedCluster]:
    with secured_cluster(tls) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def service(secure: EmbeddedCluster) -> Iterator[Service]:
    """The service as a user with the fewest ACLs."""
    with Service(secure, user="nothing", application_id="caughtup") as service:
        yield service


def test_the_service_works_with_the_fewest_acls(secure: EmbeddedCluster, service: Service) -> None:
    service.wait_value(6, "group_lag_records", group="readers")
    age = {"name": "snapshot_age_seconds", "source": "reassignments"}
    wait_for("reassignments are listed", lambda: service.value(**age) is not None)
    commit(secure, "readers", "words", 9)
    service.wait_value(1, "group_lag_records", group="readers")
    commit(secure, "readers", "words", 4)
    service.wait_value(6, "group_lag_records", group="readers")
    assert not service.value("probe_errors_total", probe="end_offsets")
    assert not service.value("probe_errors_total", probe="reassignments")


def test_commands_work_with_the_fewest_acls(
    secure: EmbeddedCluster, service: Service, tmp_path: Path
) -> None:
    checked = run(secure, tmp_path, "nothing", ["check", "--format", "json"])
    assert (checked.code, checked.err) == (0, "")
    assert all(finding["ok"] for finding in checked.lines)
    lag = run(secure, tmp_path, "nothing", ["lag", "readers", "--format", "json"])
    assert (lag.code, lag.err) == (0, "")
    assert [(line["topic"], line["lag"]) for line in lag.lines] == [("words", 6)]


def test_reassignments_are_told_with_the_fewest_acls_and_throttles_are_not_known(
    secure: EmbeddedCluster, service: Service, tmp_path: Path
) -> None:
    ran = run(secure, tmp_path, "nothing", ["reassignments", "--format", "json"])
    assert (ran.code, ran.out) == (3, "")
    *unknown, nothing = ran.err.splitlines()
    assert nothing == "no partition is in movement"
    said = [re.sub(r" of broker \d+", " of a broker", line) for line in unknown]
    needed = "missing: DESCRIBE_CONFIGS on the cluster"
    assert said == [
        f"caughtup: not known: the names of topics: {needed}",
        f"caughtup: not known: throttles of a broker: {needed}",
    ]
    wait_for("the service says so", lambda: service.value("reassignments_partial") == 1)


def test_without_describe_on_the_cluster_the_command_says_what_to_allow(
    secure: EmbeddedCluster, tmp_path: Path
) -> None:
    ran = run(secure, tmp_path, "cluster", ["reassignments"])
    assert ran.code == 1
    assert "cannot list reassignments" in ran.message
    assert "missing: DESCRIBE on the cluster" in ran.message


def test_of_an_open_transaction_is_known_what_acls_allow(
    secure: EmbeddedCluster, tmp_path: Path
) -> None:
    create_topics(secure, {"held": 1})
    commit(secure, "behind", "held", 0)
    admin = AdminClient({"bootstrap.servers": secure.internal_bootstrap_servers})
    producer = Producer({**secure.client_config(), "transactional.id": "the holder"})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("held", b"open")
    producer.flush(30)

    def shown(code: int, *said: str) -> Ran | None:
        """Show transactions as a user; None if ACLs that were just created don't count yet."""
        ran = run(secure, tmp_path, "group", ["transactions", "--json"])
        return ran if ran.code == code and all(text in ran.err for text in said) else None

    wait_for("READ is missing", lambda: shown(3, "producers of held: missing: READ"))
    allow(admin, "group", topic("held", READ))
    missing = "missing: DESCRIBE on all transactional ids"
    [line] = wait_for("ids are missing", lambda: shown(0, missing)).lines
    assert "transactional_id" not in line
    assert (line["state"], line["hanging"], line["not_known"]) == ("unknown", False, missing)
    assert line["advice"] == f"whether it hangs is not known: {missing}"
    allow(admin, "group", Allowed(ResourceType.TRANSACTIONAL_ID, "*", (DESCRIBE,)))
    [line] = wait_for(
        "the holder is known", lambda: (ran := shown(0)) and not ran.err and ran
    ).lines
    assert (line["transactional_id"], line["state"]) == ("the holder", "Ongoing")
    producer.abort_transaction(30)


def test_a_password_is_told_to_nobody(service: Service) -> None:
    written = service.log + service.metrics_text() + str(service.page())
    assert "readers" in written
    assert PASSWORD not in written
    assert PASSWORD.encode("unicode_escape").decode() not in written


def test_scram_works_too(secure: EmbeddedCluster, service: Service, tmp_path: Path) -> None:
    scram = {"sasl_mechanisms": "SCRAM-SHA-512"}
    checked = run(secure, tmp_path, "scram", ["check", "--format", "json"], **scram)
    assert (checked.code, checked.err) == (0, "")
    lag = run(secure, tmp_path, "scram", ["lag", "readers", "--format", "json"], **scram)
    assert [line["lag"] for line in lag.lines] == [6]


def test_every_command_names_a_wrong_password(secure: EmbeddedCluster, tmp_path: Path) -> None:
    for ran in run_all(secure, tmp_path, sasl_password=f"{PASSWORD}, but wrong"):
        assert "refused the credentials: check sasl.* under [kafka]" in ran.message
        assert ran.seconds < SOON_SECONDS


def test_every_command_names_a_certificate_that_nobody_vouches_for(
    secure: EmbeddedCluster, tmp_path: Path
) -> None:
    authority = tmp_path / "another.pem"
    trustme.CA().cert_pem.write_to_path(authority)
    for ran in run_all(secure, tmp_path, ssl_ca_location=str(authority)):
        assert "is signed by an authority that is not in" in ran.message
        assert "ssl.ca.location under [kafka]" in ran.message
        assert ran.seconds < SOON_SECONDS


@pytest.mark.parametrize(
    ("lacking", "missing"),
    [
        ("group", "READ on the group caughtup"),
        ("write", "WRITE on the topic caughtup-end-offsets"),
    ],
)
def test_what_the_service_cannot_do_without_is_named(
    secure: EmbeddedCluster, service: Service, tmp_path: Path, lacking: str, missing: str
) -> None:
    ran = run(secure, tmp_path, lacking, ["run", "--web-port", "0"])
    assert ran.message == f"missing: {missing}; `caughtup check` names all that is missing"
    checked = run(secure, tmp_path, lacking, ["check", "--format", "json"])
    assert missing in checked.message
    assert f"missing: {missing}" in [line["detail"] for line in checked.lines if not line["ok"]]


def test_without_create_it_starts_where_its_topics_are_there(
    secure: EmbeddedCluster, service: Service
) -> None:
    second = Service(secure, user="create", application_id="caughtup")
    second.begin()
    try:
        wait_for("it stands by", lambda: "is active" in second.unready())
    finally:
        second.process.terminate(10)
    assert service.ready()


def test_a_topic_that_may_not_be_made_anew_is_named_until_it_may(
    secure: EmbeddedCluster, service: Service
) -> None:
    """Somebody takes a right away and then deletes a topic: it says which right, and recovers."""
    admin = AdminClient({"bootstrap.servers": secure.internal_bootstrap_servers})
    create = SERVICE_TOPICS._replace(operations=(CREATE,))
    (binding,) = create.bindings("nothing")
    for deleted in admin.delete_acls([AclBindingFilter(*_fields(binding))]).values():
        assert deleted.result(30)
    try:
        lag = service.topic("lag")
        admin.delete_topics([lag])[lag].result(30)
        wait_for("it says why", lambda: "allow CREATE on it" in str(service.page()["unready"]))
        (reason,) = service.page()["unready"]
        assert reason.startswith(f"topics: {lag} is gone: cannot create the topic {lag} (")
        assert not service.ready()
    finally:
        allow(admin, "nothing", create)
    wait_for("it is ready again", service.ready)
    assert lag in admin.list_topics(timeout=30).topics


def _fields(acl: AclBinding) -> tuple[object, ...]:
    resource = acl.restype, acl.name, acl.resource_pattern_type
    return (*resource, acl.principal, acl.host, acl.operation, acl.permission_type)


def test_check_names_everything_that_is_missing(
    secure: EmbeddedCluster, service: Service, tmp_path: Path
) -> None:
    checked = run(secure, tmp_path, "everything", ["check", "--format", "json"])
    assert checked.code == 1
    assert [line["detail"] for line in checked.lines if not line["ok"]] == [
        "missing: READ on the topic __consumer_offsets, or DESCRIBE on groups: none is listed",
        "missing: DESCRIBE on the cluster",
        "missing: READ on the group caughtup",
        "missing: READ, WRITE on the topic caughtup-end-offsets",
        "missing: READ, WRITE on the topic caughtup-reassignments",
        "missing: READ, WRITE on the topic caughtup-recommended-assignments",
        "missing: READ, WRITE on the topic caughtup-learned-configs",
        "missing: READ, WRITE on the topic caughtup-movements",
        "missing: READ, WRITE on the topic caughtup-lag",
        "missing: READ, WRITE on the topic caughtup-transactions",
        "missing: READ on the topic caughtup-task-positions",
        "missing: READ on the topic caughtup-catch-up-rates",
        "missing: READ on the topic caughtup-application-states",
        "missing: READ on the topic caughtup-pipeline-progress",
        f"missing: WRITE on the transactional id caughtup: {UNFENCED}",
    ]
    assert checked.message.endswith("(and 14 more)")


def test_a_user_who_may_do_nothing_is_told_what_to_allow(
    secure: EmbeddedCluster, tmp_path: Path
) -> None:
    started = run(secure, tmp_path, "everything", ["run", "--web-port", "0"])
    assert "cannot create the topic caughtup-" in started.message
    assert "allow CREATE on it" in started.message
    lag = run(secure, tmp_path, "everything", ["lag"])
    assert lag.message.startswith(
        "no group is listed: allow READ on the topic __consumer_offsets, or DESCRIBE on groups"
    )


def test_without_read_on_the_log_it_asks_and_says_so(
    secure: EmbeddedCluster, tmp_path: Path
) -> None:
    checked = run(secure, tmp_path, "offsets", ["check", "--format", "json"])
    (source,) = [line["detail"] for line in checked.lines if line["check"] == "source"]
    assert "__consumer_offsets can't be read: coordinators are asked" in source
    with Service(secure, user="offsets", ask_interval=1) as service:
        assert service.value("source", source="ask") == 1
        # All groups are listed to who may DESCRIBE the cluster; this one may not be described.
        wait_for("it is said", lambda: "missing: DESCRIBE on the group" in service.log, 30)
        assert service.value("probe_errors_total", probe="offsets")


def test_without_describe_on_the_cluster_only_reassignments_are_unknown(
    secure: EmbeddedCluster,
) -> None:
    with Service(secure, user="cluster") as service:
        service.wait_value(6, "group_lag_records", group="readers")
        failures = {"name": "probe_errors_total", "probe": "reassignments"}
        wait_for("the probe fails", lambda: service.value(**failures))
        assert service.value("snapshot_age_seconds", source="reassignments") is None
        assert "missing: DESCRIBE on the cluster" in service.log
        assert service.ready()


def test_rebalances_that_it_may_not_see_are_decided_and_the_missing_right_is_said_once(
    secure: EmbeddedCluster, service: Service, group: str
) -> None:
    async def rebalance(times: int) -> int:
        async with PlayedApplication(secure.internal_bootstrap_servers, group) as application:
            for _ in range(times):
                generation, _ = await application.rebalance((), joins_after=0.3)
        return generation

    said = "the service needs DESCRIBE on the cluster, or on the groups"
    create_topics(secure, dict.fromkeys(topics_of(group), 2))
    with Service(secure, user="cluster") as denied:
        last = asyncio.run(rebalance(14))
        for one in (denied, service):
            one.wait_value(last, "group_generation", group=group)
        wait_for("it is said", lambda: said in denied.log)
        time.sleep(1)
        assert denied.log.count(said) == 1
        assert said not in service.log


def test_without_write_on_its_transactional_id_it_decides_and_says_so(
    secure: EmbeddedCluster, group: str, tmp_path: Path
) -> None:
    checked = run(secure, tmp_path, "fence", ["check", "--format", "json"])
    assert [line["detail"] for line in checked.lines if not line["ok"]] == [
        f"missing: WRITE on the transactional id caughtup: {UNFENCED}"
    ]
    with Service(secure, user="fence") as service:
        need = f"allow WRITE on the transactional id {service.application_id}, and restart"
        assert service.log.count(need) == 1
        assert any(need in notice for notice in service.page()["notices"])
        members = (Member("a", 0, active=("0_0",)), Member("b", 1, active=("0_1",)))
        record = generation(1, *members, group=group, at_ms=int(time.time() * 1000))
        admin = AdminClient({"bootstrap.servers": secure.internal_bootstrap_servers})
        partitions = admin.list_topics(timeout=30).topics["__consumer_offsets"].partitions
        write_offsets(secure, coordinator_partition(group, len(partitions)), record)
        topic = service.topic("recommended-assignments")
        wait_for("it decides", lambda: whole_topic(secure, topic))
        assert service.ready()


def test_without_describe_on_topics_lag_is_unknown_and_not_wrong(
    secure: EmbeddedCluster, service: Service, tmp_path: Path
) -> None:
    lag = run(secure, tmp_path, "topics", ["lag", "readers", "--format", "json"])
    (line,) = lag.lines
    assert line["committed"] == 4
    assert "lag" not in line
    assert "end_offset" not in line
