"""The Helm chart: what Helm, Kubernetes' schemas and the Prometheus operator's say of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import helm_python
import pytest

from caughtup.agents.configuration.loading import read_settings
from caughtup.agents.main import main
from caughtup.agents.settings import Settings
from caughtup.agents.web.access import AllowedHosts
from tests.observability.repository import DASHBOARDS, ROOT, RULES, read_yaml
from tests.support.charts.manifests import refused, rendered
from tests.support.charts.values_schema import CHART, SCHEMA, encoded, values_schema
from tests.support.settings import settings_from

MINIMAL: dict[str, Any] = {}
EVERYTHING: dict[str, Any] = {
    "image": {"digest": f"sha256:{7:064x}"},
    "imagePullSecrets": [{"name": "registry"}],
    "settings": {
        "bootstrap_servers": "kafka.kafka.svc:9093",
        "lag_interval": 5,
        "web_allowed_hosts": ["caughtup.example.com"],
        "web_tls_certificate": "/etc/caughtup-secrets/web/tls.crt",
        "web_token_file": "/etc/caughtup-secrets/web/token",
        "kafka": {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "caughtup",
            "socket.timeout.ms": 30000,
            "enable.ssl.certificate.verification": True,
        },
        "applications": {
            "orders": {"num.standby.replicas": 1, "changelogs": {"0": ["orders-changelog"]}}
        },
    },
    "secrets": ["kafka", "web"],
    "env": [{"name": "TZ", "value": "UTC"}],
    "volumes": [{"name": "checkpoints", "persistentVolumeClaim": {"claimName": "spark"}}],
    "volumeMounts": [{"name": "checkpoints", "mountPath": "/checkpoints", "readOnly": True}],
    "serviceAccount": {"annotations": {"role": "reader"}},
    "service": {"annotations": {"a": "b"}},
    "monitor": {
        "kind": "PodMonitor",
        "labels": {"release": "prometheus"},
        "token": {"name": "web", "key": "token"},
        "tlsConfig": {"insecureSkipVerify": True},
    },
    "rules": {"enabled": True, "labels": {"release": "prometheus"}},
    "dashboard": {"enabled": True},
    "networkPolicy": {
        "enabled": True,
        "from": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}],
        "kafka": {"to": [{"ipBlock": {"cidr": "192.0.2.0/24"}}], "ports": [9093]},
        "egress": [{"ports": [{"protocol": "TCP", "port": 443}]}],
    },
    "podAnnotations": {"a": "b"},
    "podLabels": {"team": "data"},
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "dedicated", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "priorityClassName": "high",
}
SERVICE_MONITOR = {"monitor": {"kind": "ServiceMonitor"}, "nameOverride": "lags"}
SHARED: dict[str, Any] = {"settings": {"workers": "shared"}}
STATEFUL: dict[str, Any] = {**SHARED, "kind": "StatefulSet", "replicas": 3}
AUTOSCALED: dict[str, Any] = {**SHARED, "autoscaling": {"enabled": True, "targetCPU": 70}}
KINDS = {"ConfigMap", "Deployment", "PodDisruptionBudget", "Service", "ServiceAccount"}


def one(kind: str, values: dict[str, Any]) -> dict[str, Any]:
    """Return the release's manifest of a kind, the dashboards' ConfigMaps aside."""
    (found,) = (
        manifest
        for name, manifest in rendered(values).items()
        if manifest["kind"] == kind and "-dashboard-" not in name
    )
    return found


def container(values: dict[str, Any]) -> dict[str, Any]:
    workload = one(values.get("kind", "Deployment"), values)
    (found,) = workload["spec"]["template"]["spec"]["containers"]
    return dict(found)


def variables(values: dict[str, Any]) -> dict[str, Any]:
    return {one["name"]: one for one in container(values)["env"]}


def settings_of(values: dict[str, Any], directory: Path) -> Settings:
    """Return what the service makes of a release's ConfigMap."""
    path = directory / "caughtup.toml"
    path.write_text(one("ConfigMap", values)["data"]["caughtup.toml"])
    return read_settings(path).settings


def test_helm_finds_nothing_to_complain_of() -> None:
    for values in (MINIMAL, EVERYTHING, STATEFUL, AUTOSCALED):
        said = helm_python.lint(str(CHART), values, strict=True)
        assert said["errors"] == []
        found = [message["error"] for message in said["messages"] if message["severity"] > 1]
        assert found == []


def test_a_release_is_what_it_takes_and_no_more() -> None:
    assert {manifest["kind"] for manifest in rendered(MINIMAL).values()} == KINDS
    more = {"NetworkPolicy", "PodMonitor", "PrometheusRule"}
    assert {manifest["kind"] for manifest in rendered(EVERYTHING).values()} == KINDS | more


@pytest.mark.parametrize(
    "values",
    [
        MINIMAL,
        EVERYTHING,
        SERVICE_MONITOR,
        {**STATEFUL, **AUTOSCALED},
        {**STATEFUL, "networkPolicy": {"enabled": True}},
    ],
    ids=["minimal", "everything", "monitor", "autoscaled", "stateful"],
)
def test_every_manifest_is_valid_by_the_published_schemas(values: dict[str, Any]) -> None:
    found = {name: refused(manifest) for name, manifest in rendered(values).items()}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("Deployment", EVERYTHING),
        ("HorizontalPodAutoscaler", AUTOSCALED),
        ("NetworkPolicy", EVERYTHING),
        ("PodMonitor", EVERYTHING),
        ("PrometheusRule", EVERYTHING),
        ("StatefulSet", STATEFUL),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_field_that_there_is_not_is_found(kind: str, values: dict[str, Any]) -> None:
    manifest = one(kind, values)
    manifest["spec"]["nonsense"] = 1
    assert [wrong for wrong in refused(manifest) if "nonsense" in wrong]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"replicas": "two"}, "'/replicas': got string, want integer"),
        ({"service": {"port": 123456}}, "'/service/port': maximum"),
        ({"settings": {"lag_interval": "often"}}, "'/settings/lag_interval': got string"),
        ({"settings": {"lag_intervall": 5}}, "additional properties 'lag_intervall' not allowed"),
        ({"settings": {"web_port": 80}}, "additional properties 'web_port' not allowed"),
        ({"settings": {"kafka": {"sasl.password": "x"}}}, "invalid propertyName 'sasl.password'"),
        ({"settings": {"kafka": {"sasl.username": ["x"]}}}, "'/settings/kafka/sasl.username'"),
        ({"image": {"digest": "latest"}}, "'/image/digest'"),
        ({"monitor": {"kind": "Probe"}}, "'/monitor/kind'"),
        ({"secrets": ["a", "a"]}, "'/secrets'"),
        ({"replica": 1}, "additional properties 'replica' not allowed"),
        ({"kind": "DaemonSet"}, "'/kind'"),
        ({"autoscaling": {"maxReplicas": 17}}, "'/autoscaling/maxReplicas': maximum"),
    ],
    ids=str,
)
def test_a_wrong_value_is_refused_by_its_name(values: dict[str, Any], said: str) -> None:
    with pytest.raises(helm_python.HelmValuesError) as refusal:
        rendered(values)
    assert said in str(refusal.value)


def test_the_schema_is_made_of_the_settings() -> None:
    assert SCHEMA.read_text() == encoded(values_schema()), "type: make chart"


def test_every_value_has_its_default_and_its_schema() -> None:
    def compare(values: Any, schema: dict[str, Any], path: str) -> None:
        if schema.get("additionalProperties") is False and path != ".settings":
            known = schema["properties"].keys() - {"global"}
            optional = known if path in {".monitor.token"} else set()
            assert values.keys() | optional == known, path
            for name, value in values.items():
                compare(value, schema["properties"][name], f"{path}.{name}")

    compare(read_yaml(CHART / "values.yaml"), json.loads(SCHEMA.read_text()), "")


def test_the_settings_arrive_in_the_service(tmp_path: Path) -> None:
    settings = settings_of(EVERYTHING, tmp_path)
    given = EVERYTHING["settings"]
    assert settings.bootstrap_servers == given["bootstrap_servers"]
    assert settings.lag_interval == 5
    # As librdkafka is to get them: 30000, and not 30000.0 or true.
    assert {name: str(value) for name, value in settings.kafka.items()} == {
        name: str(value) for name, value in given["kafka"].items()
    }
    assert settings.parameters()["orders"].config["num.standby.replicas"] == 1
    assert settings_of(MINIMAL, tmp_path).kafka == {}


def test_pods_that_share_the_groups_know_each_others_addresses() -> None:
    for kind in ("Deployment", "StatefulSet"):
        for settings in ({}, {"workers": "active"}):
            assert "CAUGHTUP_WEB_ADDRESS" not in variables({"kind": kind, "settings": settings})
    shared = variables(SHARED)
    assert list(shared)[-2:] == ["POD_IP", "CAUGHTUP_WEB_ADDRESS"], "the first is known by then"
    assert shared["POD_IP"]["valueFrom"] == {"fieldRef": {"fieldPath": "status.podIP"}}
    assert shared["CAUGHTUP_WEB_ADDRESS"]["value"] == "http://$(POD_IP):8080"


def test_a_pod_of_a_stateful_set_is_reached_at_its_own_name(tmp_path: Path) -> None:
    values = {**STATEFUL, "settings": {**SHARED["settings"], "web_tls_certificate": "/tls.crt"}}
    given = variables(values)
    assert list(given)[-2:] == ["POD_NAME", "CAUGHTUP_WEB_ADDRESS"], "the first is known by then"
    assert given["POD_NAME"]["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.name"}}
    address = given["CAUGHTUP_WEB_ADDRESS"]["value"].replace("$(POD_NAME)", "lag-caughtup-0")
    assert address == "https://lag-caughtup-0.lag-caughtup-pods.kafka.svc:8080"
    assert Settings(web_address=address).web_address == address
    manifests = rendered(values)
    workload, named = (
        manifests[f"{kind}/lag-caughtup"]["spec"] for kind in ("StatefulSet", "Service")
    )
    pods = manifests["Service/lag-caughtup-pods"]["spec"]
    assert workload["serviceName"] == "lag-caughtup-pods"
    assert pods["clusterIP"] == "None"
    assert pods["publishNotReadyAddresses"] is True, "they ask one that isn't ready, too"
    for service in (pods, named):
        assert service["selector"].items() <= workload["template"]["metadata"]["labels"].items()


def test_a_monitor_of_services_finds_each_pod_of_a_stateful_set_once() -> None:
    manifests = rendered({**STATEFUL, "monitor": {"kind": "ServiceMonitor"}})
    monitor = manifests["ServiceMonitor/lag-caughtup"]["spec"]
    (endpoint,) = monitor["endpoints"]
    services = [one for one in manifests.values() if one["kind"] == "Service"]
    found = [
        service["metadata"]["name"]
        for service in services
        if monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
        for port in service["spec"]["ports"]
        if port["name"] == endpoint["port"]
    ]
    assert (len(services), found) == (2, ["lag-caughtup"])


def test_a_name_that_is_too_long_for_pods_of_a_stateful_set_is_refused() -> None:
    longest = "a" * 52
    assert f"StatefulSet/{longest}" in rendered(
        {"kind": "StatefulSet", "fullnameOverride": longest}
    )
    with pytest.raises(helm_python.HelmError, match="too many for a StatefulSet's pods: set full"):
        rendered({"kind": "StatefulSet", "fullnameOverride": f"{longest}b"})


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_pods_are_replaced_and_evicted_one_at_a_time(kind: str) -> None:
    manifests = rendered({**SHARED, "kind": kind, "replicas": 16})
    spec = manifests[f"{kind}/lag-caughtup"]["spec"]
    assert spec["replicas"] == 16
    assert spec["minReadySeconds"] == 10, "its part moves meanwhile"
    if kind == "Deployment":
        assert spec["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    else:
        assert spec["updateStrategy"] == {"type": "RollingUpdate"}
        assert spec["podManagementPolicy"] == "Parallel", "else each would wait for the one before"
    assert manifests["PodDisruptionBudget/lag-caughtup"]["spec"]["maxUnavailable"] == 1


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_an_autoscaler_says_how_many_pods_there_are(kind: str) -> None:
    values = {**AUTOSCALED, "kind": kind}
    workload = one(kind, values)
    assert "replicas" not in workload["spec"], "an upgrade would take back what it has scaled"
    spec = one("HorizontalPodAutoscaler", values)["spec"]
    assert spec["scaleTargetRef"] == {
        "apiVersion": workload["apiVersion"],
        "kind": kind,
        "name": workload["metadata"]["name"],
    }
    assert (spec["minReplicas"], spec["maxReplicas"]) == (2, 8)
    assert {
        metric["resource"]["name"]: metric["resource"]["target"]["averageUtilization"]
        for metric in spec["metrics"]
    } == {"memory": 80, "cpu": 70}
    for way in spec["behavior"].values():
        assert [policy["value"] for policy in way["policies"]] == [1]
    (memory,) = one("HorizontalPodAutoscaler", {**SHARED, "autoscaling": {"enabled": True}})[
        "spec"
    ]["metrics"]
    assert memory["resource"]["name"] == "memory"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"settings": {}}, "set settings.workers to shared"),
        ({"settings": {"workers": "active"}}, "set settings.workers to shared"),
        ({"autoscaling": {"enabled": True, "minReplicas": 9}}, "lower one or raise the other"),
        ({"autoscaling": {"enabled": True, "targetMemory": 0}}, "set targetMemory or targetCPU"),
        ({"resources": {"requests": {"cpu": None}}}, "set resources.requests.cpu"),
    ],
    ids=str,
)
def test_an_autoscaler_that_could_not_scale_is_refused(values: dict[str, Any], said: str) -> None:
    with pytest.raises(helm_python.HelmError, match=said):
        rendered({**AUTOSCALED, **values})


def test_pods_that_share_the_groups_may_ask_each_other() -> None:
    def rules(values: dict[str, Any]) -> tuple[list[Any], list[Any]]:
        spec = one("NetworkPolicy", {**EVERYTHING, **values})["spec"]
        peers = [{"podSelector": spec["podSelector"]}]
        ingress = [rule["ports"] for rule in spec["ingress"] if rule.get("from") == peers]
        return ingress, [rule["ports"] for rule in spec["egress"] if rule.get("to") == peers]

    assert rules({}) == ([], [])
    assert rules(SHARED) == (
        [[{"protocol": "TCP", "port": "http"}]],
        [[{"protocol": "TCP", "port": 8080}]],
    )


def test_it_is_asked_by_its_names_inside_the_cluster(tmp_path: Path) -> None:
    settings = settings_of(EVERYTHING, tmp_path)
    assert settings.web_host == "0.0.0.0"
    allowed = AllowedHosts(settings.web_host, settings.web_allowed_hosts)
    service = one("Service", EVERYTHING)["metadata"]["name"]
    for name in (service, f"{service}.kafka.svc", "caughtup.example.com", "10.1.2.3"):
        assert allowed.allows(f"{name}:8080"), name
    assert not allowed.allows("elsewhere.example.com")


def test_the_command_and_what_it_is_given_exist() -> None:
    words = container(EVERYTHING)["args"]
    _, command, rest = main.resolve_command(click.Context(main), words)
    assert isinstance(command, click.Command)
    assert {"--config"} <= {name for option in command.params for name in option.opts}
    assert rest[0] == "--config"
    mounts = {mount["mountPath"] for mount in container(EVERYTHING)["volumeMounts"]}
    assert str(Path(rest[1]).parent) in mounts
    assert {"/etc/caughtup-secrets/kafka", "/etc/caughtup-secrets/web"} <= mounts
    variables = {
        one["name"].removeprefix("CAUGHTUP_").lower(): one["value"]
        for one in container(MINIMAL)["env"]
    }
    assert settings_from(variables).web_port == 8080


def test_probes_ask_what_the_service_answers_and_how_it_speaks() -> None:
    for values, scheme in ((MINIMAL, "HTTP"), (EVERYTHING, "HTTPS")):
        found = container(values)
        probes = {name: found[f"{name}Probe"]["httpGet"] for name in ("liveness", "readiness")}
        assert probes["liveness"] == {"path": "/healthz", "port": "http", "scheme": scheme}
        assert probes["readiness"] == {"path": "/ready?standby", "port": "http", "scheme": scheme}
        assert found["ports"] == [{"name": "http", "containerPort": 8080}]
    (endpoint,) = one("PodMonitor", EVERYTHING)["spec"]["podMetricsEndpoints"]
    assert (endpoint["scheme"], endpoint["path"]) == ("https", "/metrics")


def test_what_selects_pods_selects_these() -> None:
    manifests = rendered(EVERYTHING)
    labels = manifests["Deployment/lag-caughtup"]["spec"]["template"]["metadata"]["labels"]
    specs = [manifest["spec"] for manifest in manifests.values() if "spec" in manifest]
    selectors = [spec["selector"] for spec in specs if "selector" in spec]
    selectors += [spec["podSelector"] for spec in specs if "podSelector" in spec]
    assert len(selectors) == 5
    for selector in selectors:
        assert selector.get("matchLabels", selector).items() <= labels.items()


def test_a_pod_may_do_nothing_but_its_work() -> None:
    pod = one("Deployment", MINIMAL)["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    user = pod["securityContext"]["runAsUser"]
    assert f"--uid {user} " in (ROOT / "Dockerfile").read_text()
    limits = container(MINIMAL)["securityContext"]
    assert limits == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container(MINIMAL)["resources"]["limits"]["memory"] == "1Gi"


def test_another_setting_is_another_pod() -> None:
    def checksum(**settings: Any) -> str:
        deployment = one("Deployment", {"settings": settings})
        annotations = deployment["spec"]["template"]["metadata"]["annotations"]
        return str(annotations["checksum/settings"])

    assert checksum() == checksum()
    assert checksum(lag_interval=5) != checksum()


def test_rules_and_dashboards_are_ours() -> None:
    manifests = rendered(EVERYTHING)
    assert manifests["PrometheusRule/lag-caughtup"]["spec"] == read_yaml(RULES)
    prefix = "ConfigMap/lag-caughtup-dashboard-"
    shown = {
        name: text
        for key in manifests
        if key.startswith(prefix)
        for name, text in manifests[key]["data"].items()
    }
    ours = {path.name: path.read_text() for path in DASHBOARDS.iterdir()}
    assert {name: json.loads(text) for name, text in shown.items()} == {
        name: json.loads(text) for name, text in ours.items()
    }
    # What `kubectl apply` notes of a manifest has to fit into an annotation.
    assert all(len(text) < 200_000 for text in shown.values())


def test_the_job_is_the_one_that_the_rules_name() -> None:
    (job,) = read_yaml(ROOT / "prometheus" / "prometheus.yml")["scrape_configs"]
    label = one("PodMonitor", EVERYTHING)["spec"]["jobLabel"]
    labels = one("Deployment", EVERYTHING)["spec"]["template"]["metadata"]["labels"]
    assert labels[label] == job["job_name"]


def test_chart_and_package_have_one_version() -> None:
    import caughtup

    chart = read_yaml(CHART / "Chart.yaml")
    assert chart["version"] == chart["appVersion"] == caughtup.__version__
