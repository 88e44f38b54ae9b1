"""A real Kubernetes API server with its etcd on loopback: what it accepts, defaults and refuses.

It has no kubelet and no controllers: nothing is scheduled, and no container runs.
"""

from __future__ import annotations

import json
import secrets
import shutil
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from caughtup.demo.processes.children import Processes, free_ports
from tests.observability.repository import ROOT
from tests.support.service import wait_for

PROGRAM = ROOT / "build" / "kube-apiserver"
#: Where a kind's objects are.
_PLACES = {
    "ConfigMap": "configmaps",
    "Deployment": "deployments",
    "HorizontalPodAutoscaler": "horizontalpodautoscalers",
    "NetworkPolicy": "networkpolicies",
    "Pod": "pods",
    "PodDisruptionBudget": "poddisruptionbudgets",
    "Service": "services",
    "ServiceAccount": "serviceaccounts",
    "StatefulSet": "statefulsets",
}


def missing() -> str | None:
    """Return why no API server can be started; None if one can."""
    if not PROGRAM.exists():
        return "there is no build/kube-apiserver; type: make apiserver"
    return None if shutil.which("etcd") else "there is no etcd"


class Refused(Exception):  # noqa: N818
    """The API server refused a request."""


class ApiServer:
    """Sends requests as an administrator."""

    def __init__(self, port: int, token: str) -> None:
        self._url = f"https://127.0.0.1:{port}"
        self._token = token
        # It makes its own certificate at each start.
        self._tls = ssl._create_unverified_context()

    def ask(self, path: str, method: str = "GET", body: object = None) -> dict[str, Any]:
        """Send a request; return the object. Raises Refused with the server's message."""
        apply = method == "PATCH"
        request = urllib.request.Request(
            f"{self._url}{path}",
            None if body is None else json.dumps(body).encode(),
            {
                "Authorization": f"Bearer {self._token}",
                "Content-Type": "application/apply-patch+yaml" if apply else "application/json",
            },
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=30, context=self._tls) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            raise Refused(json.loads(error.read())["message"]) from None
        return dict(json.loads(text)) if text.startswith(b"{") else {"text": text.decode()}

    def is_ready(self) -> bool:
        try:
            return self.ask("/readyz")["text"] == "ok"
        except (OSError, Refused, ValueError):
            return False

    def make_namespace(self, name: str) -> None:
        """Make a namespace in which only pods of the level *restricted* are admitted."""
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        manifest = {"metadata": {"name": name, "labels": labels}}
        self.ask("/api/v1/namespaces", "POST", manifest)

    def apply(self, manifest: dict[str, Any], namespace: str) -> dict[str, Any]:
        """Apply a manifest as ``kubectl apply --server-side`` does; unknown fields are refused."""
        version = manifest["apiVersion"]
        group = f"/apis/{version}" if "/" in version else f"/api/{version}"
        place = f"{group}/namespaces/{namespace}/{_PLACES[manifest['kind']]}"
        name = manifest["metadata"]["name"]
        asked = f"{place}/{name}?fieldManager=helm&fieldValidation=Strict"
        return self.ask(asked, "PATCH", manifest)


def knows(manifest: dict[str, Any]) -> bool:
    """Return whether the kind is Kubernetes' own, and not an operator's."""
    return manifest["kind"] in _PLACES


@contextmanager
def api_server() -> Iterator[ApiServer]:
    """Run etcd and the API server."""
    with Processes() as processes:
        directory, token = processes.directory, secrets.token_hex(16)
        client, peer, port = free_ports(3)
        key = directory / "accounts.key"
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], capture_output=True, check=True)
        users = directory / "users.csv"
        users.write_text(f"{token},admin,admin,system:masters\n")
        store = f"http://127.0.0.1:{client}"
        processes.start(
            "etcd",
            [
                *("etcd", "--data-dir", "etcd", "--listen-client-urls", store),
                *("--advertise-client-urls", store),
                *("--listen-peer-urls", f"http://127.0.0.1:{peer}"),
            ],
        )
        program = processes.start(
            "kube-apiserver",
            [
                *(PROGRAM, f"--etcd-servers={store}", "--bind-address=127.0.0.1"),
                *(f"--secure-port={port}", "--cert-dir=certificates"),
                *(f"--token-auth-file={users}", "--authorization-mode=RBAC"),
                *(
                    "--service-account-issuer=https://127.0.0.1",
                    "--service-cluster-ip-range=10.0.0.0/24",
                ),
                *(f"--service-account-key-file={key}", f"--service-account-signing-key-file={key}"),
            ],
        )
        server = ApiServer(port, token)

        def ready() -> bool:
            assert program.exit_code is None, program.output()[-3_000:]
            return server.is_ready()

        wait_for("the API server is ready", ready, 120)
        yield server
