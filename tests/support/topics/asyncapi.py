"""docs/topics/asyncapi.json: every own topic as an AsyncAPI 3.0 document, from their schemas."""

from __future__ import annotations

from typing import Any

import caughtup
from caughtup.agents.topics.definitions import SERVICE_TOPICS
from caughtup.models.records import topics
from tests.support.topics.catalogue import TOPICS, Kind, Topic
from tests.support.topics.page import examples
from tests.support.topics.schemas import DIALECT, DIRECTORY, describe, file_of, key_schema
from tests.support.topics.validation import kinds_of

FILE = DIRECTORY / "asyncapi.json"
_OWN = {own.name: own for own in SERVICE_TOPICS}
_FORMAT = "application/schema+json;version=2020-12"
_BINDING = "0.5.0"
_TOMBSTONE = "Tombstone"


def document() -> dict[str, Any]:
    """Return the document: a channel and the service's operation for each topic."""
    assert DIALECT.endswith("/2020-12/schema")
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "caughtup's topics",
            "version": caughtup.__version__,
            "description": "The records that caughtup writes to Kafka, and those that others write for it. "
            "docs/topics.md has the same for people; made by `make schemas`.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "channels": {topic.name: _channel(topic) for topic in TOPICS},
        "operations": {f"{_action(topic)}-{topic.name}": _operation(topic) for topic in TOPICS},
        "components": {
            "messages": {name: one for topic in TOPICS for name, one in _messages(topic).items()},
            "parameters": {
                "prefix": {
                    "description": "The setting topic_prefix of the service.",
                    "default": topics.DEFAULT_PREFIX,
                }
            },
        },
    }


def _channel(topic: Topic) -> dict[str, Any]:
    names = [*_messages(topic), *([_TOMBSTONE] if topic.tombstones else [])]
    return {
        "address": f"{{prefix}}{topic.name}",
        "description": topic.about,
        "parameters": {"prefix": {"$ref": "#/components/parameters/prefix"}},
        "messages": {
            name: (
                _tombstone(topic)
                if name == _TOMBSTONE
                else {"$ref": f"#/components/messages/{name}"}
            )
            for name in names
        },
        "bindings": {
            "kafka": {
                "partitions": 1,
                "topicConfiguration": {"cleanup.policy": _OWN[topic.name].cleanup.split(",")},
                "bindingVersion": _BINDING,
            }
        },
    }


def _action(topic: Topic) -> str:
    """Return the service's operation: it sends to a topic, or only receives from it."""
    return "send" if _OWN[topic.name].written else "receive"


def _operation(topic: Topic) -> dict[str, Any]:
    return {"action": _action(topic), "channel": {"$ref": f"#/channels/{topic.name}"}}


def _messages(topic: Topic) -> dict[str, Any]:
    return {kind.struct.__name__: _message(topic, kind) for kind in topic.kinds}


def _message(topic: Topic, kind: Kind) -> dict[str, Any]:
    name = kind.struct.__name__
    return {
        "name": name,
        "description": describe(kind.struct).summary,
        "payload": {
            "schemaFormat": _FORMAT,
            "schema": {"$ref": f"./{file_of(topic).name}#/$defs/{name}"},
        },
        "bindings": {"kafka": {"key": _key(kind), "bindingVersion": _BINDING}},
        "examples": [
            {"summary": f"With the key {shown['key']}.", "payload": shown["value"]}
            for shown in examples()[topic.name]
            if kinds_of(topic.name, [shown["key"].encode()], shown["value"]) == {name}
        ],
    }


def _tombstone(topic: Topic) -> dict[str, Any]:
    keys = [_key(kind) for kind in topic.kinds]
    return {
        "name": _TOMBSTONE,
        "description": "A record without a value: the subject of its key is deleted.",
        "payload": {"type": "null"},
        "bindings": {
            "kafka": {
                "key": keys[0] if len(keys) == 1 else {"anyOf": keys},
                "bindingVersion": _BINDING,
            }
        },
    }


def _key(kind: Kind) -> dict[str, Any]:
    keys = [key_schema(key) for key in kind.keys]
    return keys[0] if len(keys) == 1 else {"anyOf": keys}
