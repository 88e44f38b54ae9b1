"""docker-compose.yml and the Dockerfile: valid, and everything they name exists."""

from __future__ import annotations

import json
import re
from importlib.metadata import distribution
from pathlib import Path
from socket import gethostname
from typing import Any

import click
import jsonschema
import pytest

from caughtup.agents.cli.files import shared_files
from caughtup.agents.main import main
from caughtup.agents.process.health import Health
from caughtup.agents.web.access import AllowedHosts
from caughtup.agents.web.server import WebServer
from caughtup.models.state.cluster import ClusterState
from tests.observability.repository import ROOT, read_yaml
from tests.support.settings import settings_from

TEXT = (ROOT / "docker-compose.yml").read_text()
COMPOSE: dict[str, Any] = read_yaml(ROOT / "docker-compose.yml")
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
BUILT = {name: service for name, service in SERVICES.items() if "build" in service}
IMAGES = {service["image"] for service in BUILT.values()}
# A line that ends in a backslash goes on.
DOCKERFILE = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")


def stages() -> dict[str, str]:
    found = re.split(r"^FROM ", DOCKERFILE, flags=re.MULTILINE)[1:]
    return {re.match(r"\S+ AS (\w+)", text)[1]: text for text in found}  # type: ignore[index]


def base_of(stage: str) -> str:
    """Name what a stage begins from; a variable stands for its default."""
    base = stages()[stage].split()[0]
    return re.sub(r"^\$\{(\w+)\}$", lambda found: defaults()[found[1]], base)


def defaults() -> dict[str, str]:
    """Return the arguments of the build and what they are unless somebody says otherwise."""
    return dict(re.findall(r"^ARG (\w+)=(\S+)$", DOCKERFILE, re.MULTILINE))


def settings_of(service: dict[str, Any]) -> dict[str, str]:
    """Return our settings among a service's variables; one of the shell stands for its default."""
    return {
        name.removeprefix("CAUGHTUP_").lower(): re.sub(r"\$\{\w+:-(\w+)\}", r"\1", value)
        for name, value in service.get("environment", {}).items()
        if name.startswith("CAUGHTUP_")
    }


def test_the_compose_file_is_valid_by_the_compose_specification() -> None:
    # The specification's schema comes with check-jsonschema: nothing is fetched.
    vendored = "check_jsonschema/builtin_schemas/vendor/compose-spec.json"
    schema = json.loads(Path(distribution("check-jsonschema").locate_file(vendored)).read_text())
    validator = jsonschema.validators.validator_for(schema)(schema)
    assert [error.message for error in validator.iter_errors(COMPOSE)] == []
    assert list(validator.iter_errors({"services": {"x": {"image": ["not a string"]}}}))


def test_the_services_are_those_that_operating_needs() -> None:
    watching = {"prometheus", "alertmanager", "grafana"}
    assert set(SERVICES) == {"kafka", "caughtup", "caughtup-more", "history"} | watching
    started = {name for name, service in SERVICES.items() if "profiles" not in service}
    assert set(SERVICES) - started == {"caughtup-more"}


def test_more_instances_are_as_the_first_one_but_for_what_only_one_can_have() -> None:
    first, more = SERVICES["caughtup"], SERVICES["caughtup-more"]
    assert {name for name in first | more if first.get(name) != more.get(name)} == {
        *("build", "ports"),
        *("profiles", "pull_policy", "scale"),
    }
    # Two services that build one image at once are refused, and there is none to be pulled.
    assert "build" not in more
    assert more["pull_policy"] == "never"
    assert 1 + more["scale"] == 3


def test_each_instance_is_found_by_the_name_of_its_container() -> None:
    for name in ("caughtup", "caughtup-more"):
        service = SERVICES[name]
        # The host's name is the container's id, which Docker's DNS knows in a network of one's own.
        assert not {"hostname", "container_name", "network_mode", "networks"} & service.keys()
        settings = settings_from(settings_of(service))
        assert (settings.web_host, settings.web_address) == ("0.0.0.0", None)
        server = WebServer(settings, ClusterState("cluster-1", {}), Health())
        assert server.address == f"http://{gethostname()}:8080"


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_ports_are_published_on_loopback_only(name: str) -> None:
    for port in SERVICES[name].get("ports", []):
        assert re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port)


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_what_is_mounted_exists(name: str) -> None:
    for entry in SERVICES[name].get("volumes", []):
        source, target, *_ = entry.split(":")
        assert target.startswith("/")
        if source.startswith("./"):
            assert (ROOT / source).exists(), source
        else:
            assert source in COMPOSE["volumes"]


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_what_a_service_waits_for_exists_and_can_tell_that_it_is_healthy(name: str) -> None:
    waited = SERVICES[name].get("depends_on", {})
    for other in waited:
        assert other in SERVICES
        if isinstance(waited, dict) and waited[other]["condition"] == "service_healthy":
            assert "healthcheck" in SERVICES[other]


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_images_have_exact_versions_and_digests(name: str) -> None:
    service = SERVICES[name]
    if service["image"] not in IMAGES:
        assert re.search(r":v?\d+\.\d+\.\d+@sha256:[0-9a-f]{64}$", service["image"])


def test_the_dockerfile_begins_from_one_image_by_its_digest() -> None:
    bases = {base_of(stage) for stage in stages()} - set(stages())
    (base,) = bases
    assert re.fullmatch(r"python:3\.11-slim-bookworm@sha256:[0-9a-f]{64}", base)


def test_whatever_is_fetched_is_named_by_a_lock_with_its_hash() -> None:
    commands = re.findall(r"\bpip (?:install|wheel)\b[^&]*", DOCKERFILE)
    assert commands
    for command in commands:
        assert ("--no-deps" if "--no-index" in command else "--require-hashes") in command
        # Else pip fetches what a package says it is built with, by no lock.
        assert (
            "--no-index" in command
            or "build.lock" in command
            or ("--no-build-isolation" in command)
        )


def test_prometheus_asks_for_the_service_by_a_name_that_is_allowed() -> None:
    (job,) = read_yaml(ROOT / "prometheus" / "prometheus.yml")["scrape_configs"]
    ((target,),) = (config["targets"] for config in job["static_configs"])
    environment = SERVICES["caughtup"]["environment"]
    settings = settings_from({"web_allowed_hosts": environment["CAUGHTUP_WEB_ALLOWED_HOSTS"]})
    assert AllowedHosts("0.0.0.0", settings.web_allowed_hosts).allows(target)


@pytest.mark.parametrize("name", sorted(BUILT))
def test_commands_and_their_options_exist(name: str) -> None:
    words = list(BUILT[name]["command"])
    command: click.Command = main
    while words and isinstance(command, click.Group):
        _, found, words = command.resolve_command(click.Context(command), words)
        assert found is not None
        command = found
    assert not isinstance(command, click.Group)
    # Parsing refuses unknown options and missing ones, and runs nothing.
    with command.make_context(name, words, resilient_parsing=False):
        pass


@pytest.mark.parametrize("name", sorted(BUILT))
def test_variables_of_ours_are_settings(name: str) -> None:
    # Refuses names and values that it doesn't know.
    settings = settings_from(settings_of(BUILT[name]))
    assert settings.workers == "active"


def test_the_instances_share_the_groups_if_a_variable_says_so() -> None:
    (variable,) = re.findall(
        r"^#   (CAUGHTUP_\w+)=shared docker compose --profile more", TEXT, re.MULTILINE
    )
    assert SERVICES["caughtup"]["environment"]["CAUGHTUP_WORKERS"] == f"${{{variable}:-active}}"
    assert SERVICES["caughtup-more"]["profiles"] == ["more"]


def test_everybody_uses_kafkas_listener_inside_the_network() -> None:
    kafka = SERVICES["kafka"]["environment"]
    assert "INTERNAL://kafka:19092" in kafka["KAFKA_ADVERTISED_LISTENERS"]
    assert SERVICES["caughtup"]["environment"]["CAUGHTUP_BOOTSTRAP_SERVERS"] == "kafka:19092"
    assert "kafka:19092" in SERVICES["history"]["command"]
    published = [port.split(":")[-1] for port in SERVICES["kafka"]["ports"]]
    assert published == ["9092"]
    assert "HOST://127.0.0.1:9092" in kafka["KAFKA_ADVERTISED_LISTENERS"]


def test_prometheus_scrapes_the_port_that_the_service_listens_on() -> None:
    environment = SERVICES["caughtup"]["environment"]
    scrape = read_yaml(ROOT / "prometheus" / "prometheus.yml")
    port = environment["CAUGHTUP_WEB_PORT"]
    (job,) = scrape["scrape_configs"]
    assert job["static_configs"] == [{"targets": [f"caughtup:{port}"]}]
    more = {"names": ["caughtup-more"], "type": "A", "port": int(port)}
    assert job["dns_sd_configs"] == [more], "and none of them twice"
    assert f"EXPOSE {port}" in stages()["service"]
    assert [p.split(":")[-1] for p in SERVICES["caughtup"]["ports"]] == [port]
    check = " ".join(SERVICES["caughtup"]["healthcheck"]["test"])
    for asked in (check, stages()["service"].replace("\\", "")):
        assert "f\"http://127.0.0.1:{os.environ['CAUGHTUP_WEB_PORT']}/ready\"" in asked
    assert f"CAUGHTUP_WEB_PORT={port}" in stages()["service"]


def test_prometheus_finds_the_rules_where_they_are_mounted() -> None:
    mounted = [entry.split(":")[1] for entry in SERVICES["prometheus"]["volumes"]]
    assert set(read_yaml(ROOT / "prometheus" / "prometheus.yml")["rule_files"]) <= set(mounted)


def test_prometheus_sends_alerts_to_the_alertmanager_that_reads_our_configuration() -> None:
    alerting = read_yaml(ROOT / "prometheus" / "prometheus.yml")["alerting"]
    ((target,),) = (c["targets"] for m in alerting["alertmanagers"] for c in m["static_configs"])
    host, port = target.split(":")
    assert [p.split(":")[-1] for p in SERVICES[host]["ports"]] == [port]
    # The image's own default for --config.file.
    mounts = dict(entry.split(":")[:2] for entry in SERVICES[host]["volumes"])
    assert mounts["./prometheus/alertmanager.yml"] == "/etc/alertmanager/alertmanager.yml"


@pytest.mark.parametrize("name", sorted(BUILT))
def test_our_images_run_as_nobody_in_particular(name: str) -> None:
    stage = stages()[BUILT[name]["build"]["target"]]
    users = re.findall(r"^USER (\S+)", stage, re.MULTILINE)
    assert users
    assert users[-1] not in {"0", "root"}


def test_only_the_image_for_spark_has_java() -> None:
    assert "openjdk-17" in stages()["history"]
    chain = ["service"]
    while base_of(chain[-1]) in stages():
        chain.append(base_of(chain[-1]))
    assert not any("openjdk" in stages()[stage] for stage in chain)
    assert list(stages())[-1] == "service", "docker build without a target makes the small one"


def test_the_image_is_made_of_the_wheel_alone() -> None:
    copied = re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE, re.MULTILINE)
    assert copied == ["${WHEELS}/caughtup-*-py3-none-any.whl /wheels/"]
    sent = (ROOT / ".dockerignore").read_text().splitlines()[1:]
    assert sent == [
        "*",
        "!caughtup-*-py3-none-any.whl",
        f"!{defaults()['WHEELS']}/caughtup-*-py3-none-any.whl",
    ]
    assert {service["build"]["context"] for service in BUILT.values()} == {"."}


def test_the_locks_that_it_installs_are_in_the_wheel() -> None:
    locks = set(re.findall(r"/locks/(\S+)", DOCKERFILE))
    assert len(locks) == 3
    assert locks <= shared_files(ROOT / "caughtup").keys()


@pytest.mark.parametrize("name", sorted(BUILT))
def test_what_is_ours_has_limits(name: str) -> None:
    assert re.fullmatch(r"[1-9]g", BUILT[name]["mem_limit"])
    assert BUILT[name]["cpus"] > 0
    assert BUILT[name]["pids_limit"] > 0
