"""docs/topics.md, made of the topics' schemas and of records that a real run published."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from caughtup.agents.topics.definitions import SERVICE_TOPICS
from caughtup.models.records.topics import SAID_ONCE
from tests.support.topics.catalogue import TOPICS, Kind, Topic
from tests.support.topics.schemas import DIRECTORY, Schema, file_of, topic_schema, unit_of

PAGE = DIRECTORY.with_suffix(".md")
#: By topic, records of each kind: the key as text, the value.
EXAMPLES = DIRECTORY / "examples.json"

_CLEANUP = {own.name: own.cleanup for own in SERVICE_TOPICS}
_HEAD = """\
# Topics

The records of caughtup's own topics, each with the prefix `topic_prefix` (`caughtup-`). `make \
schemas` generates this page and the JSON Schema files in [topics/](topics/) from \
`models/records/`. Tests compare them with the code, and check every record that real runs \
publish, those of Kafka Streams' follower included. [asyncapi.json](topics/asyncapi.json) is an \
AsyncAPI 3.0 document of all of it, for tools; [integrating.md](integrating.md) has consumers in \
Python and Java. [operating.md](operating.md#what-does-it-write-to-kafka) says how the topics are \
configured, and what happens to a record that breaks the rules.

**Versions.** A reader ignores fields that it does not know: a release that adds fields keeps \
`schema`. A release whose records older readers would misread raises `schema`. A reader refuses a \
`schema` that it does not know (`other_schema`), counts it \
(`caughtup_records_refused_total`), and keeps the last good value. The meaning of a field never \
changes within a schema.

**Values** are JSON objects; a tombstone is a record without a value. A field that is not required \
may be absent. It is then unknown, does not apply, or has the `default` in the file. \
Integers go up to 2^63 - 1 and are written without a fraction (`5.0` is refused). Times are ms since the epoch. A process is a Kafka Streams process id, a \
UUID; a task is a subtopology and a partition, `0_3`.
"""


def examples() -> dict[str, list[dict[str, Any]]]:
    """Read the page's example records, by topic."""
    found: dict[str, list[dict[str, Any]]] = json.loads(EXAMPLES.read_text())
    return found


def page() -> str:
    """Return the whole page."""
    shown = examples()
    parts = [_HEAD, *(_section(topic, shown[topic.name]) for topic in TOPICS)]
    return "\n".join(parts)


def _section(topic: Topic, shown: list[dict[str, Any]]) -> str:
    schema = topic_schema(topic)
    file = Path(DIRECTORY.name, file_of(topic).name)
    schemas = sorted({number for kind in topic.kinds for number in kind.schemas})
    facts = [
        f"Key: {'; '.join(_keys(kind, topic) for kind in topic.kinds)}.",
        f"Cleanup: {_CLEANUP[topic.name]}.",
        f"Schema: {' and '.join(map(str, schemas)) or 'none'}, [{file.name}]({file}).",
    ]
    if topic.name in SAID_ONCE:
        facts.append("Written in transactions: read it with `isolation.level=read_committed`.")
    lines = [f"## caughtup-{topic.name}", "", topic.about, "", " ".join(facts), ""]
    for name, part in schema["$defs"].items():
        if name != "key" and part.keys() & {"properties", "prefixItems"}:
            lines += [*_table(name, part), ""]
    for example in shown:
        value = _lines(example["value"])
        lines += [f"A record with the key `{example['key']}`:", "", "```json", value, "```", ""]
    return "\n".join(lines)


def _keys(kind: Kind, topic: Topic) -> str:
    """Describe the keys of a kind, and name the kind if there are two."""
    keys = [f"{key.of} ({'text' if key.is_text else 'JSON'}, `{key.example}`)" for key in kind.keys]
    of = f"of a {kind.struct.__name__} " if len(topic.kinds) > 1 else ""
    return of + " or ".join(keys)


def _table(name: str, part: Schema) -> Iterator[str]:
    yield f"**{name}.** {part['description']}"
    yield ""
    yield "| field | type | unit | required | meaning |"
    yield "|---|---|---|---|---|"
    # The fields of an array are in this order.
    items = part.get("prefixItems", ())
    fields = part.get("properties") or {item["title"]: item for item in items}
    for field, schema in fields.items():
        required = "yes" if items or field in part["required"] else ""
        if "x-since-schema" in schema:
            required = f"since schema {schema['x-since-schema']}"
        meaning = schema["description"]
        yield f"| `{field}` | {_type(schema)} | {unit_of(schema)} | {required} | {meaning} |"


def _lines(value: Any, indent: str = "", width: int = 100) -> str:
    """Format JSON for readers: values that fit into a line are on one."""
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or len(indent) + len(line) <= width:
        return line
    inner = indent + "  "
    if isinstance(value, dict):
        parts = [f"{json.dumps(name)}: {_lines(of, inner)}" for name, of in value.items()]
    else:
        parts = [_lines(of, inner) for of in value]
    first, last = "{}" if isinstance(value, dict) else "[]"
    return f"{first}\n" + ",\n".join(inner + part for part in parts) + f"\n{indent}{last}"


def _type(schema: Schema) -> str:
    """Return a field's type in words."""
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "anyOf" in schema:
        return " or ".join(_type(one) for one in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(f"`{json.dumps(one).strip(chr(34))}`" for one in schema["enum"])
    if "prefixItems" in schema:
        return f"array of {' and '.join(map(_type, schema['prefixItems']))}"
    if schema["type"] == "array":
        return f"array of {_type(schema['items'])}"
    if isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_type(schema['additionalProperties'])}"
    return str(schema["type"])
