"""``make chart``: write the chart's values.schema.json from the service's settings.

Run as ``python -m tests.support.charts.values_schema``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import msgspec

from caughtup.agents.application_settings import ApplicationConfig
from caughtup.agents.declared_settings import Limits, Setting, settings_of
from caughtup.agents.settings import Settings
from caughtup.models.security.kafka_names import JAVA, LIBRDKAFKA, is_secret
from caughtup.models.sharing import MOST_INSTANCES

CHART = Path(__file__).resolve().parents[3] / "charts" / "caughtup"
SCHEMA = CHART / "values.schema.json"
#: The settings that the chart sets itself.
_OF_THE_CHART = ("web_host", "web_port")
_TEXT = {"type": "string"}
_TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
_ANY = {"type": "object"}
_TYPES: Mapping[object, str] = {
    bool: "boolean",
    dict: "object",
    float: "number",
    int: "integer",
    NoneType: "null",
    Path: "string",
    str: "string",
    tuple: "array",
}
_LIMITS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "min_length": "minLength",
    "max_length": "maxLength",
}
_NO_LIMITS = Limits()
_LIMITS_OF_LISTS = {"max_length": "maxItems"}
_PORT = {"type": "integer", "minimum": 1, "maximum": 65535}
#: As many instances as can have partitions.
_SHARING = {"type": "integer", "minimum": 1, "maximum": MOST_INSTANCES}
#: Of a request, which is less than a limit.
_PERCENT = {"type": "integer", "minimum": 0, "maximum": 1000}
_SECONDS = {"type": "string", "pattern": "^[1-9][0-9]*(ms|s|m)$"}


def values_schema() -> dict[str, Any]:
    """Return the JSON Schema of the chart's values."""
    settings = _table(Settings)
    for name in _OF_THE_CHART:
        del settings["properties"][name]
    # A ConfigMap must not contain secrets.
    secrets = sorted(name for name in LIBRDKAFKA | JAVA if is_secret(name))
    settings["properties"]["kafka"]["propertyNames"] = {"not": {"enum": secrets}}
    settings["properties"]["kafka"]["additionalProperties"] = {
        "type": ["string", "integer", "boolean"]
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Values of the chart caughtup; made by `make chart`",
        "$defs": {ApplicationConfig.__name__: _table(ApplicationConfig)},
        **_closed(
            image=_closed(
                repository={"type": "string", "minLength": 1},
                tag=_TEXT,
                digest={"type": "string", "pattern": "^(sha256:[0-9a-f]{64})?$"},
                pullPolicy={"enum": ["Always", "IfNotPresent", "Never"]},
            ),
            imagePullSecrets=_list(_closed(name=_TEXT)),
            nameOverride=_TEXT,
            fullnameOverride=_TEXT,
            kind={"enum": ["Deployment", "StatefulSet"]},
            replicas={"type": "integer", "minimum": 0},
            autoscaling=_closed(
                enabled={"type": "boolean"},
                minReplicas=_SHARING,
                maxReplicas=_SHARING,
                targetMemory=_PERCENT,
                targetCPU=_PERCENT,
            ),
            settings=settings,
            secrets={**_list({"type": "string", "minLength": 1}), "uniqueItems": True},
            env=_list({"type": "object", "required": ["name"]}),
            volumes=_list({"type": "object", "required": ["name"]}),
            volumeMounts=_list({"type": "object", "required": ["name", "mountPath"]}),
            resources=_closed(requests=_ANY, limits=_ANY),
            serviceAccount=_closed(create={"type": "boolean"}, name=_TEXT, annotations=_TEXTS),
            service=_closed(
                type={"enum": ["ClusterIP", "NodePort", "LoadBalancer"]},
                port=_PORT,
                annotations=_TEXTS,
            ),
            monitor=_closed(
                kind={"enum": ["none", "PodMonitor", "ServiceMonitor"]},
                labels=_TEXTS,
                interval=_SECONDS,
                scrapeTimeout=_SECONDS,
                token=_closed(name=_TEXT, key=_TEXT),
                tlsConfig=_ANY,
            ),
            rules=_closed(enabled={"type": "boolean"}, labels=_TEXTS),
            dashboard=_closed(enabled={"type": "boolean"}, labels=_TEXTS),
            networkPolicy=_closed(
                enabled={"type": "boolean"},
                **{"from": _list(_ANY)},
                kafka=_closed(to=_list(_ANY), ports=_list(_PORT)),
                egress=_list(_ANY),
            ),
            podDisruptionBudget=_closed(
                enabled={"type": "boolean"}, maxUnavailable={"type": ["integer", "string"]}
            ),
            podAnnotations=_TEXTS,
            podLabels=_TEXTS,
            nodeSelector=_TEXTS,
            tolerations=_list(_ANY),
            affinity=_ANY,
            priorityClassName=_TEXT,
            **{"global": _ANY},
        ),
    }


def encoded(schema: dict[str, Any]) -> str:
    """Return a schema as the text of its file."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _table(declaring: type) -> dict[str, Any]:
    """Return the schema of a table of settings."""
    settings = settings_of(declaring).values()
    return {
        "additionalProperties": False,
        "properties": {one.name: _setting(one) for one in settings},
        "type": "object",
    }


def _setting(setting: Setting) -> dict[str, Any]:
    declared = setting.declared
    schema = _kind(setting.type, declared.limits)
    schema["default"] = msgspec.to_builtins(setting.default)
    if declared.description:
        schema["description"] = declared.description
    if declared.examples:
        schema["examples"] = msgspec.to_builtins(declared.examples, str_keys=True)
    return dict(sorted(schema.items()))


def _kind(kind: Any, limits: Limits = _NO_LIMITS) -> dict[str, Any]:
    """Return the schema of a type's values within some limits."""
    origin, arguments = get_origin(kind) or kind, get_args(kind)
    if origin in (Union, UnionType):
        return {"anyOf": [_kind(one, limits) for one in arguments]}
    if origin is Literal:
        return {"enum": list(arguments), "type": "string"}
    if is_dataclass(kind):
        return {"$ref": f"#/$defs/{kind.__name__}"}
    schema: dict[str, Any] = {"type": _TYPES[origin]}
    if origin is tuple:
        schema["items"] = _kind(arguments[0])
    elif origin is dict:
        schema["additionalProperties"] = _kind(arguments[1])
    elif origin is Path:
        schema["format"] = "path"
    names = _LIMITS_OF_LISTS if origin is tuple else _LIMITS
    found = {names[key]: limit for key, limit in limits._asdict().items() if limit is not None}
    return schema if origin is NoneType else dict(sorted((schema | found).items()))


if __name__ == "__main__":
    SCHEMA.write_text(encoded(values_schema()))
