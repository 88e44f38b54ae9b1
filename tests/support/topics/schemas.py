"""JSON Schema of own topics, made of their structs: bounds, units, and fields' meanings."""

from __future__ import annotations

import inspect
import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tests.support.topics.catalogue import Key, Topic

DIRECTORY = Path(__file__).parents[3] / "docs" / "topics"
DIALECT = "https://json-schema.org/draft/2020-12/schema"

#: A broker's id as a name.
_BROKER = "^(0|[1-9][0-9]{0,9})$"
_REF = "#/$defs/{name}"
_FIELD = re.compile(r"^(\w+): (.*(?:\n    .*)*)$", re.MULTILINE)
_SINCE = re.compile(r"; since schema (\d+)\.$")

Schema = dict[str, Any]


class Described(NamedTuple):
    """A struct's docstring: its summary, and its fields' meanings by their names in JSON."""

    summary: str
    fields: dict[str, str]


@cache
def describe(struct: type[msgspec.Struct]) -> Described:
    """Read the docstrings of a struct and of its base structs."""
    fields: dict[str, str] = {}
    for kind in reversed(struct.__mro__):
        text = inspect.cleandoc(kind.__doc__ or "")
        if issubclass(kind, msgspec.Struct) and kind is not msgspec.Struct:
            fields |= {name: _one_line(meaning) for name, meaning in _FIELD.findall(text)}
    text = inspect.cleandoc(struct.__doc__ or "")
    return Described(_one_line(_FIELD.sub("", text)), fields)


def topic_schema(topic: Topic) -> Schema:
    """Return the schema of a topic's values, with its keys' schema as ``$defs/key``."""
    kinds = tuple(kind.struct for kind in topic.kinds)
    schemas = {kind.struct.__name__: kind.schemas for kind in topic.kinds}
    _, components = msgspec.json.schema_components(kinds, ref_template=_REF)
    structs = {one.__name__: one for kind in kinds for one in structs_of(kind)}
    parts = {
        name: _with_meanings(component, structs[name], schemas.get(name, ()))
        for name, component in components.items()
    }
    refs = [{"$ref": _REF.format(name=kind.__name__)} for kind in kinds]
    root: Schema = refs[-1]
    for when, then in zip(reversed(topic.when), reversed(refs[:-1]), strict=True):
        root = {"if": when, "then": then, "else": root}
    return {
        "$schema": DIALECT,
        "title": f"caughtup-{topic.name}",
        "description": topic.about,
        **root,
        "$defs": {"key": _key_schema(topic), **parts},
    }


def encode(schema: Schema) -> str:
    """Return a schema as the text of its file."""
    return msgspec.json.format(msgspec.json.encode(schema), indent=2).decode() + "\n"


def file_of(topic: Topic) -> Path:
    """Return the path of a topic's schema."""
    return DIRECTORY / f"{topic.name}.schema.json"


def key_schema(key: Key) -> Schema:
    """Return the schema of a form of keys, decoded as its ``x-encoding`` says."""
    encoding = "text" if key.is_text else "json"
    return {"description": key.of, "x-encoding": encoding, **msgspec.json.schema(key.type)}


def unit_of(schema: Schema) -> str:
    """Return the unit of a field or of its elements; empty if it has none."""
    inner = [*schema.get("anyOf", ()), schema.get("items"), schema.get("additionalProperties")]
    units = (unit_of(one) for one in inner if isinstance(one, dict))
    return schema.get("x-unit") or next(filter(None, units), "")


def _key_schema(topic: Topic) -> Schema:
    keys = [key_schema(key) for kind in topic.kinds for key in kind.keys]
    return keys[0] if len(keys) == 1 else {"anyOf": keys}


def structs_of(kind: Any) -> set[type[msgspec.Struct]]:
    """Return a struct and all structs in it."""
    found: set[type[msgspec.Struct]] = set()
    waiting = [msgspec.inspect.type_info(kind)]
    while waiting:
        info = waiting.pop()
        if isinstance(info, msgspec.inspect.StructType):
            if info.cls in found:
                continue
            found.add(info.cls)
            waiting += [field.type for field in info.fields]
        for name in ("types", "item_types"):
            waiting += getattr(info, name, ())
        for name in ("item_type", "key_type", "value_type", "type"):
            inner = getattr(info, name, None)
            waiting += [inner] if isinstance(inner, msgspec.inspect.Type) else []
    return found


def _with_meanings(
    schema: Schema, struct: type[msgspec.Struct], schemas: tuple[int, ...]
) -> Schema:
    described = describe(struct)
    info = msgspec.inspect.type_info(struct)
    assert isinstance(info, msgspec.inspect.StructType)
    if info.array_like:
        names = (field.encode_name for field in info.fields)
        items = [
            {"title": name, "description": described.fields[name], **item}
            for name, item in zip(names, schema["prefixItems"], strict=True)
        ]
        return {**schema, "description": described.summary, "prefixItems": items}
    types = {field.encode_name: field.type for field in info.fields}
    properties = {}
    for name, field in schema["properties"].items():
        if name in types:
            _bound_names(field, types[name])
        meaning = described.fields[name]
        since = _SINCE.search(meaning)
        properties[name] = {"description": _SINCE.sub(".", meaning), **field}
        if since:
            properties[name]["x-since-schema"] = int(since[1])
    if schemas:
        properties["schema"] |= {"type": "integer", "enum": list(schemas)}
    return {**schema, "description": described.summary, "properties": properties}


def _bound_names(schema: Schema, info: msgspec.inspect.Type) -> None:
    """Add that an object's names are brokers' ids, which msgspec leaves out."""
    kinds = info.types if isinstance(info, msgspec.inspect.UnionType) else (info,)
    keys = [kind.key_type for kind in kinds if isinstance(kind, msgspec.inspect.DictType)]
    if any(isinstance(key, msgspec.inspect.IntType) for key in keys):
        for part in (schema, *schema.get("anyOf", ())):
            if part.get("type") == "object":
                part["propertyNames"] = {"pattern": _BROKER}


def _one_line(text: str) -> str:
    return " ".join(text.replace("``", "`").split())
