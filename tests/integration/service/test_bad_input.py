"""What nobody can make sense of: settings, records. One line about it, and nothing else is lost."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.processes.children import free_ports
from caughtup.models.assignors.java.strings import coordinator_partition
from caughtup.models.polls.batch import Record
from caughtup.models.wire.consumer_offsets import OffsetKey
from tests.support import wire
from tests.support.groups.records import commit as raw_commit
from tests.support.groups.streams import Member, generation, process
from tests.support.kafka.topics import words_read, write_offsets
from tests.support.service import Ran, Service, caughtup, commit, wait_for
from tests.support.sizes import daily

#: Kafka has 10 s to answer; the rest is for a machine that is busy with other tests.
SOON_SECONDS = 45


def every_command(
    directory: Path, settings: str | bytes = "", environment: Mapping[str, str] | None = None
) -> list[Ran]:
    """Run every command with these settings, at once: they mostly wait. Each day the service."""
    written = settings.encode() if isinstance(settings, str) else settings
    (directory / "caughtup.toml").write_bytes(written)
    # Of no other program's port is there to be any talk, unless it is the port that is wrong.
    given = (written.decode(errors="replace") + str(environment)).lower()
    port = [] if "web_port" in given else ["--web-port", "0"]
    with ThreadPoolExecutor() as threads:
        running = [
            threads.submit(caughtup, *command, directory=directory, environment=environment)
            for command in daily([["run", *port]], [["lag"], ["check"], ["run", *port]])
        ]
        return [ran.result() for ran in running]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            "nonsense = 1",
            "unknown setting nonsense (caughtup.toml); see docs/reference/settings.md for the list",
        ),
        ("[kafka", "the settings file caughtup.toml is not TOML: "),
        (b"\xff\xfe", "the settings file caughtup.toml is not TOML: "),
        ('web_port = "eighty"', "setting web_port: "),
        ("[kafka]\nno.such.property = 1", "setting kafka.no"),
        (
            '[kafka]\n"no.such.property" = 1',
            "setting kafka.no.such.property: no client has such a property",
        ),
        (
            '[kafka]\n"security.protocol" = "TLS"',
            "setting kafka.security.protocol: TLS is not a Kafka protocol",
        ),
        ('[kafka]\n"security.protocol" = "SSL"\n"ssl.ca.location" = "/no"', "ssl.ca.location"),
    ],
)
def test_every_command_names_the_setting_that_is_wrong(
    tmp_path: Path, settings: str | bytes, message: str
) -> None:
    for ran in every_command(tmp_path, settings):
        assert message in ran.message
        assert ran.seconds < SOON_SECONDS


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("CAUGHTUP_NONSENSE", "1", "unknown setting CAUGHTUP_NONSENSE in the environment"),
        ("CAUGHTUP_WEB_PORT", "eighty", "setting web_port: "),
        ("CAUGHTUP_KAFKA", "{", "settings in the environment: "),
        ("CAUGHTUP_CONFIG", "/no/such.toml", "cannot read the settings file /no/such.toml: "),
    ],
)
def test_every_command_names_the_variable_that_is_wrong(
    tmp_path: Path, name: str, value: str, message: str
) -> None:
    for ran in every_command(tmp_path, environment={name: value}):
        assert message in ran.message


def test_every_command_names_the_cluster_that_does_not_answer(tmp_path: Path) -> None:
    for ran in every_command(tmp_path, 'bootstrap_servers = "127.0.0.1:1"'):
        assert "cannot reach Kafka at 127.0.0.1:1: nothing listens there (" in ran.message
        assert "): check bootstrap_servers" in ran.message
        assert ran.seconds < SOON_SECONDS


def test_the_service_says_that_its_port_is_taken(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
        other.listen()
        ran = caughtup("run", "--web-port", str(port), directory=tmp_path)
    assert ran.message == (
        f"cannot listen on 127.0.0.1:{port} (Address already in use): choose another with "
        "--web-port"
    )


#: Where these tests write records of their own. The coordinator of that partition finds an end
#: that it didn't write, reads the log again, and gives up at the first damage: no group may be there.
DAMAGED = 0


def elsewhere(prefix: str) -> str:
    """Name a group that is not kept on the damaged partition."""
    names = (f"{prefix}-{number}" for number in count())
    return next(name for name in names if coordinator_partition(name, 4) != DAMAGED)


FIRST, PLAIN = elsewhere("first"), elsewhere("plain")


@pytest.fixture(scope="module")
def damaged() -> Iterator[EmbeddedCluster]:
    """A cluster of its own, whose brokers would not start again as they should."""
    with EmbeddedCluster() as cluster:
        words_read(cluster, 10, 1, FIRST)
        yield cluster


@pytest.fixture(scope="module")
def service(damaged: EmbeddedCluster) -> Iterator[Service]:
    with Service(damaged, application_id=elsewhere("caughtup")) as service:
        yield service


def write(cluster: EmbeddedCluster, *records: Record) -> None:
    """Write records as they are to the damaged partition of ``__consumer_offsets``."""
    write_offsets(cluster, DAMAGED, *records)


def test_records_that_nobody_can_read_are_counted_and_what_comes_after_them_counts(
    damaged: EmbeddedCluster, service: Service
) -> None:
    damage = {
        (1, "truncated"): (wire.offset_key(OffsetKey("cut", "words", 0)), b"\0\3cut"),
        (1, "unknown_version"): (wire.offset_key(OffsetKey("new", "words", 0)), b"\0\x63"),
        (1, "bad_length"): (wire.number("h", 1) + b"\x7f\xffgroup", b"\0\3"),
        (2, "unknown_version"): (wire.group_key("newer"), b"\0\x63"),
        (2, "bad_length"): (wire.group_key("garbage"), b"\0\3" + b"\x7f" * 40),
        ("unknown", "truncated"): (b"\1", b"a key without a type"),
    }
    write(damaged, *damage.values())
    write(damaged, (wire.number("h", 99) + b"whatever", b"from the future"))
    write(damaged, raw_commit(0, 7, topic="words", group="after"))
    service.wait_value(3, "group_lag_records", group="after")
    for key_type, code in damage:
        assert service.value("decode_errors_total", key_type=key_type, code=code) == 1
    assert service.value("offsets_records_skipped_total", key_type="other") == 1
    commit(damaged, FIRST, "words", 2)
    service.wait_value(8, "group_lag_records", group=FIRST)
    assert service.ready()
    assert "skipped a record of __consumer_offsets: " in service.log
    assert "Traceback" not in service.log


def test_a_service_started_beside_damage_is_ready_and_so_is_the_command(
    damaged: EmbeddedCluster, service: Service, tmp_path: Path
) -> None:
    write(
        damaged,
        raw_commit(0, 5, topic="words", group="late"),
        (raw_commit(0, 5, topic="words", group="late")[0], b"\0\3cut"),
        raw_commit(0, 6, topic="words", group="later"),
    )
    with Service(damaged, application_id=elsewhere("second")) as second:
        # The last value of the key that can be read.
        second.wait_value(5, "group_lag_records", group="late")
        second.wait_value(4, "group_lag_records", group="later")
    ran = caughtup(
        "lag", "later", "--format", "json", "--config", service.settings_file, directory=tmp_path
    )
    assert (ran.code, ran.err) == (0, "")
    assert [line["lag"] for line in ran.lines] == [4]


def test_a_member_that_is_no_streams_member_is_left_out_and_named(
    damaged: EmbeddedCluster, service: Service
) -> None:
    reader = Consumer({**damaged.client_config(), "group.id": PLAIN})
    try:
        reader.subscribe(["words"])
        wait_for("it is assigned", lambda: reader.poll(0.1) or reader.assignment())
        odd = Member("odd", 2, user_data=b"no Streams member says this")
        good = Member("good", 1, active=("0_0",))
        write(damaged, generation(1, odd, good, group="mixed"))
        write(damaged, generation(1, odd, group="odd"))
        mixed = wait_for("it is decided", lambda: application(service, "mixed"))
        assert [client["process"] for client in mixed["clients"]] == [str(process(1))]
        assert f"member left out: {odd.client_id}" in str(mixed)
        assert wait_for("so is this", lambda: application(service, "odd"))["clients"] == []
        service.wait_value(1, "group_members", group=PLAIN, group_type="classic")
        service.wait_value(2, "group_members", group="mixed", group_type="streams")
        assert "Traceback" not in service.log
    finally:
        reader.close()


def application(service: Service, group: str) -> dict[str, Any]:
    """Return the page's view of a decided application, {} before it is."""
    views = service.page()["applications"]
    return next((view for view in views if view["group"] == group and "exact" in view), {})
