"""The images, built and started: what is in them, a cluster outside watched, health, SIGTERM."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import time
import urllib.request
from pathlib import Path

import pytest

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce
from caughtup.demo.cluster.topics import create_topics
from caughtup.demo.processes.children import free_ports
from tests.support.control_groups import memory_group
from tests.support.images import UID, Builder, Container, Image
from tests.support.service import commit, wait_for
from tests.test_images import locked

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(1500)]

WITHOUT_CERTIFICATES = "localhost/debian-without-certificates"
#: How long a cluster is watched: a minute here, `IMAGE_SECONDS=600` for ten.
WATCHED_SECONDS = float(os.environ.get("IMAGE_SECONDS", "60"))
COMPILERS = re.compile(r"^(gcc|g\+\+|cc|c\+\+|cpp|ld|as|make|javac|cargo|rustc|go)(-\d+)?$")
#: What tools keep for the next time. Python's own compiled files are no such cache: without them,
#: each start on a read-only root would compile all that it imports.
CACHES = re.compile(
    r"^/(root/\.cache|wheels|unpacked|locks|opt/build|var/lib/apt/lists/.|var/cache/apt/.|tmp/.)"
    r"|^/opt/.*\.whl$|/\.ivy2|/\.cache$"
)


@pytest.fixture(scope="module", params=["service", "history"])
def image(request: pytest.FixtureRequest) -> Image:
    return request.getfixturevalue(f"{request.param}_image")


@pytest.fixture
def cluster(images_cluster: EmbeddedCluster) -> EmbeddedCluster:
    return images_cluster


def environment(cluster: EmbeddedCluster, port: int) -> dict[str, str]:
    """Return the service's settings, as ``docker run --env`` has them."""
    return {
        "CAUGHTUP_BOOTSTRAP_SERVERS": cluster.bootstrap_servers,
        "CAUGHTUP_WEB_HOST": "127.0.0.1",
        "CAUGHTUP_WEB_PORT": str(port),
        "CAUGHTUP_APPLICATION_ID": f"image-{port}",
        "CAUGHTUP_TOPIC_PREFIX": f"image-{port}-",
    }


def metric(port: int, name: str, label: str) -> float | None:
    text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10).read().decode()
    found = re.search(rf"^{name}\{{[^}}]*{re.escape(label)}[^}}]*\}} (\S+)$", text, re.MULTILINE)
    return None if found is None else float(found[1])


def test_size_layers_and_time_are_printed(image: Image) -> None:
    megabytes = [round(size / 1e6, 1) for size in image.layers]
    print(f"{image.name}: {sum(megabytes):.0f} MB, layers {megabytes}, {image.seconds:.0f} s")
    assert image.seconds < 1_200
    assert len(image.layers) <= 6


def test_no_file_of_the_image_is_the_users_to_write(image: Image) -> None:
    writable = {
        name
        for name, found in image.files()
        if not stat.S_ISLNK(found.st_mode)
        and (found.st_mode & 0o002 or UID in (found.st_uid, found.st_gid))
    }
    # Directories of Debian's that are everybody's, and where the history's volume is mounted.
    expected = {"/tmp", "/var/tmp", "/run/lock"}
    if image.name == "history":
        expected |= {"/var/lib/caughtup/history"}
    assert writable <= expected


def test_neither_a_compiler_nor_a_cache_is_left(image: Image) -> None:
    names = [name for name, _ in image.files()]
    assert any(name.endswith("/bin/caughtup") for name in names)
    programs = [name for name in names if "/bin/" in name or "/sbin/" in name]
    assert [name for name in programs if COMPILERS.match(Path(name).name)] == []
    assert [name for name in names if CACHES.search(name)] == []
    assert [name for name in names if re.match(r"/opt/caughtup/.*/(pip|setuptools)$", name)] == []


def test_its_bill_of_materials_names_what_the_lock_names(image: Image) -> None:
    bill = json.loads((image.root / "opt/caughtup/sbom.cdx.json").read_text())
    assert bill["bomFormat"] == "CycloneDX"
    found = {one["name"].lower().replace("_", "-"): one["version"] for one in bill["components"]}
    wanted = {
        name: version for name, (version, _) in locked(f"requirements-{image.name}.lock").items()
    }
    assert found.items() >= wanted.items()
    assert found.keys() - wanted.keys() == {"caughtup"}


def test_a_cluster_outside_is_watched_and_sigterm_ends_it(
    service_image: Image, cluster: EmbeddedCluster
) -> None:
    port = free_ports(1)[0]
    container = Container(service_image, cluster.processes, environment=environment(cluster, port))
    container.wait_healthy()
    status = Path(f"/proc/{container.pid}/status").read_text()
    assert re.search(rf"^Uid:\s+{UID}\s+{UID}\s+{UID}\s+{UID}$", status, re.MULTILINE)
    assert re.search(r"^NSpid:\s+\d+\s+1$", status, re.MULTILINE)
    assert re.search(r"^CapEff:\s+0+$", status, re.MULTILINE)
    assert re.search(r"^NoNewPrivs:\s+1$", status, re.MULTILINE)

    group = f"group-{port}"
    ends, healthy, until = 0, 0, time.monotonic() + WATCHED_SECONDS
    topic = f"orders-{port}"
    create_topics(cluster, {topic: 1})
    while healthy < 10 or time.monotonic() < until:
        produce(cluster, topic, 10)
        ends += 10
        commit(cluster, group, topic, ends - 3)
        wait_for(
            "the lag of the newest commit",
            lambda: metric(port, "caughtup_group_lag_records", f'group="{group}"') == 3.0,
        )
        assert container.healthy(), container.process.output()
        healthy += 1
        time.sleep(min(2.0, WATCHED_SECONDS / 10))
    began = time.monotonic()
    os.kill(container.pid, signal.SIGTERM)
    assert container.process.wait() == 0, container.process.output()
    assert time.monotonic() - began < 10
    assert "Traceback" not in container.process.output()
    print(f"watched for {WATCHED_SECONDS:.0f} s, {healthy} commits and health checks")


def test_sigterm_ends_it_while_it_starts(service_image: Image, cluster: EmbeddedCluster) -> None:
    settings = environment(cluster, free_ports(1)[0])
    container = Container(service_image, cluster.processes, environment=settings)
    status = Path(f"/proc/{container.pid}/status")

    def handles() -> bool:
        (caught,) = re.findall(r"^SigCgt:\s+(\w+)$", status.read_text(), re.MULTILINE)
        return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)

    wait_for("it handles SIGTERM", handles)
    os.kill(container.pid, signal.SIGTERM)
    assert container.process.wait() == 128 + signal.SIGTERM, container.process.output()


def test_without_a_writable_tmp_it_says_so(service_image: Image, cluster: EmbeddedCluster) -> None:
    container = Container(
        service_image,
        cluster.processes,
        environment=environment(cluster, free_ports(1)[0]),
        writable=(),
    )
    assert container.process.wait() == 1
    (line,) = [
        one for one in container.process.output().splitlines() if one.startswith("caughtup:")
    ]
    assert "cannot make a temporary directory" in line
    assert "TMPDIR" in line


def test_a_memory_limit_below_need_is_said_before_it_is_killed(
    service_image: Image, cluster: EmbeddedCluster
) -> None:
    with memory_group(64_000_000) as group:
        container = Container(
            service_image,
            cluster.processes,
            environment=environment(cluster, free_ports(1)[0]),
            group=group.directory,
        )
        container.process.wait()
        assert "the memory limit is 64 MB" in container.process.output()
        assert group.killed() >= 1


def test_a_base_without_certificates_ends_the_build_with_the_reason(builder: Builder) -> None:
    builder.make_base(WITHOUT_CERTIFICATES, certificates=False)
    done = builder.build("service", WITHOUT_CERTIFICATES)
    assert done.returncode != 0
    assert re.search(r"certificate", done.stdout, re.IGNORECASE), done.stdout[-3_000:]
