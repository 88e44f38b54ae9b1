"""The chart's manifests in a real API server: accepted, admitted, upgraded; wrong ones refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.deploy.test_chart import AUTOSCALED, EVERYTHING, MINIMAL, STATEFUL
from tests.support.charts.api_server import ApiServer, Refused, api_server, knows, missing
from tests.support.charts.manifests import rendered

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    if (reason := missing()) is not None:
        pytest.skip(reason)
    with api_server() as server:
        yield server


def installed(
    server: ApiServer, values: dict[str, Any], namespace: str
) -> dict[str, dict[str, Any]]:
    """Apply a release's manifests; return the objects that the server made of them."""
    made = {}
    for name, manifest in rendered(values).items():
        if knows(manifest):
            manifest["metadata"]["namespace"] = namespace
            made[name] = server.apply(manifest, namespace)
    return made


def pod_of(workload: dict[str, Any], namespace: str) -> dict[str, Any]:
    """Return the pod that the workload's controller would create."""
    template = workload["spec"]["template"]
    metadata = {**template["metadata"], "name": "lag-0", "namespace": namespace}
    metadata.pop("creationTimestamp", None)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


@pytest.mark.parametrize("values", [MINIMAL, EVERYTHING], ids=["minimal", "everything"])
def test_a_release_is_accepted_and_its_pod_admitted_where_pods_are_restricted(
    values: dict[str, Any], server: ApiServer, request: pytest.FixtureRequest
) -> None:
    namespace = request.node.callspec.id
    server.make_namespace(namespace)
    made = installed(server, values, namespace)
    deployment = made["Deployment/lag-caughtup"]
    assert deployment["spec"]["replicas"] == 2
    without_priority = pod_of(deployment, namespace)
    # A priority class is an administrator's to make, as is what a toleration tolerates.
    without_priority["spec"].pop("priorityClassName", None)
    admitted = server.apply(without_priority, namespace)
    assert admitted["spec"]["securityContext"]["runAsUser"] == 10001


def test_a_stateful_set_and_what_scales_it_are_accepted_and_its_pod_admitted(
    server: ApiServer,
) -> None:
    server.make_namespace("stateful")
    made = installed(server, {**STATEFUL, **AUTOSCALED}, "stateful")
    scaled = made["HorizontalPodAutoscaler/lag-caughtup"]["spec"]
    assert scaled["behavior"]["scaleUp"]["selectPolicy"] == "Max", "defaults are filled in"
    assert made["Service/lag-caughtup-pods"]["spec"]["clusterIP"] == "None"
    workload = made["StatefulSet/lag-caughtup"]
    assert workload["spec"]["updateStrategy"]["rollingUpdate"]["partition"] == 0
    admitted = server.apply(pod_of(workload, "stateful"), "stateful")
    assert admitted["spec"]["containers"][0]["env"][-1]["name"] == "CAUGHTUP_WEB_ADDRESS"


def test_an_upgrade_from_the_defaults_to_everything_is_accepted(server: ApiServer) -> None:
    server.make_namespace("upgraded")
    before = installed(server, MINIMAL, "upgraded")["Deployment/lag-caughtup"]
    after = installed(server, EVERYTHING, "upgraded")["Deployment/lag-caughtup"]
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["metadata"]["generation"] == before["metadata"]["generation"] + 1
    again = installed(server, EVERYTHING, "upgraded")["Deployment/lag-caughtup"]
    assert again["metadata"]["generation"] == after["metadata"]["generation"]


def test_a_field_that_there_is_not_and_a_pod_with_too_many_rights_are_refused(
    server: ApiServer,
) -> None:
    server.make_namespace("refusing")
    installed(server, MINIMAL, "refusing")
    manifest = rendered(MINIMAL)["Deployment/lag-caughtup"]
    manifest["metadata"]["namespace"] = "refusing"
    pod = pod_of(manifest, "refusing")
    manifest["spec"]["nonsense"] = 1
    with pytest.raises(Refused, match="nonsense"):
        server.apply(manifest, "refusing")
    pod["spec"]["securityContext"]["runAsNonRoot"] = False
    with pytest.raises(Refused, match="restricted"):
        server.apply(pod, "refusing")
