"""A chart's manifests, rendered by Helm's library and validated as Kubernetes would."""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from typing import Any

import helm_python
import kubernetes_validate
from ruamel.yaml import YAML

from tests.support.charts.values_schema import CHART

#: The oldest supported Kubernetes release, and the newest with published schemas.
KUBERNETES = ("1.25", kubernetes_validate.latest_version())
_OPERATORS = "monitoring.coreos.com/v1"


def rendered(values: dict[str, Any] | None = None) -> dict[str, dict[str, Any]]:
    """Return the manifests of a release, by kind and name. Raises helm_python.HelmError."""
    files = helm_python.Chart.load(str(CHART)).render(values, name="lag", namespace="kafka")
    found = {}
    for name, text in files.items():
        if name.endswith(".yaml") and text.strip():
            for manifest in deepcopy(_manifests(text)):
                found[f"{manifest['kind']}/{manifest['metadata']['name']}"] = manifest
    return found


@cache
def _manifests(text: str) -> list[dict[str, Any]]:
    """Parse a file once: those of dashboards are long, and the same whatever the values are."""
    return list(YAML(typ="safe", pure=True).load_all(text))


def refused(manifest: dict[str, Any]) -> list[str]:
    """Return a manifest's violations of the published schemas; unknown fields are violations."""
    if manifest["apiVersion"] == _OPERATORS:
        return _refused_by_operator(manifest)
    found = []
    for version in KUBERNETES:
        try:
            kubernetes_validate.validate(manifest, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            found.append(f"{version}: {error.message}")
    return found


def _refused_by_operator(manifest: dict[str, Any]) -> list[str]:
    import cloudcoil.pydantic
    from pydantic import ValidationError

    # Checked before the models are built: a field that the operator doesn't know is an error.
    cloudcoil.pydantic.BaseModel.model_config["extra"] = "forbid"
    from cloudcoil.models.prometheus_operator import v1

    try:
        getattr(v1, manifest["kind"]).model_validate(manifest)
    except ValidationError as error:
        return [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()]
    return []
