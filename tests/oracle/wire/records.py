"""The published coordinator's record classes, driven through their own JSON form.

Kafka generates for each record a class, its serialiser and a converter from and to JSON, all from
one schema. A value of ours is put into that JSON, the jar writes it, ours reads what was written;
and the other way round, what the jar reads of any bytes is taken out as JSON.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import re
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from py4j.protocol import Py4JJavaError

from caughtup.models.errors import DecodeError
from caughtup.models.wire.record_keys import NewGroupKey, RecordType
from tests.models.wire.new_group_strategies import NEW_GROUP_KEYS
from tests.support.groups.new_group_encoders import new_group_key, new_group_record

#: Reads the value of a record of a type.
Decode = Callable[[RecordType, bytes], Any]

# Where our names of fields say more than Kafka's.
RENAMED = {
    "assignmentTimestampMs": "assignmentTimestamp",
    "timestampMs": "timestamp",
    "partitionRacks": "partitionMetadata",
}
# What Kafka has as an array of structures of these two fields, we have as a dict.
ENTRIES = {
    "partitionMetadata": ("partition", "racks"),
    "supportedProtocols": ("name", "metadata"),
    "lastAssignmentConfigs": ("key", "value"),
    "clientTags": ("key", "value"),
    "topicConfigs": ("key", "value"),
}
# Tagged fields, which the jar leaves out where they have their default. Where the schema says null
# the generated class has something empty, and writes a null that it is given.
DEFAULTS: dict[str, Any] = {
    "metadataHash": 0,
    "assignmentTimestamp": 0,
    "validatedTopologyEpoch": -1,
}
NULLABLE = ("assignmentEpochs", "classicMemberMetadata", "lastAssignmentConfigs")
# Announced for a later release, and unknown to this one.
LATER = ("storedDescriptionTopologyEpoch", "failedDescriptionTopologyEpoch")


def json_name(field: str) -> str:
    name = re.sub("_(.)", lambda match: match[1].upper(), field)
    return RENAMED.get(name, name)


def as_json(value: Any) -> Any:
    """Return a decoded value in the form of Kafka's converters; a field that isn't set is null."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, tuple):
        return [as_json(element) for element in value]
    if not dataclasses.is_dataclass(value):
        return value
    made: dict[str, Any] = {}
    for field in dataclasses.fields(value):
        name, content = json_name(field.name), getattr(value, field.name)
        if name in LATER:
            continue
        if name == "topicId":
            made[name] = base64.urlsafe_b64encode(content).decode().rstrip("=")
        elif name in NULLABLE and not content:
            made[name] = None
        elif name in ENTRIES:
            key, entry = ENTRIES[name]
            made[name] = [{key: k, entry: as_json(v)} for k, v in content.items()]
        else:
            made[name] = as_json(content)
    return made


def without_null(made: Any) -> Any:
    """Remove tagged fields that are null, so that the generated class keeps its default."""
    return without_unset(made, {})


def without_unset(read: Any, defaults: dict[str, Any] = DEFAULTS) -> Any:
    """Remove tagged fields that aren't set, as null or as their default."""
    if isinstance(read, list):
        return [without_unset(element, defaults) for element in read]
    if not isinstance(read, dict):
        return read
    return {
        name: without_unset(content, defaults)
        for name, content in read.items()
        if not (name in NULLABLE and not content)
        and not (name in defaults and content == defaults[name])
    }


def key_json(key: NewGroupKey) -> dict[str, str]:
    names = {"group": "groupId"}
    fields = key._asdict().items()
    return {names.get(f, json_name(f)): v for f, v in fields if f != "record_type"}


class Coordinator:
    """The jar's converters and serialisers."""

    def __init__(self, jvm: Any) -> None:
        self._jvm = jvm
        self._mapper = jvm.com.fasterxml.jackson.databind.ObjectMapper()
        self._converters = (
            jvm.org.apache.kafka.coordinator.group.generated.CoordinatorRecordJsonConverters
        )
        self._util = jvm.org.apache.kafka.common.protocol.MessageUtil

    def record_types(self) -> dict[str, int]:
        """Every type that this release knows, by name."""
        kinds = self._jvm.org.apache.kafka.coordinator.group.generated.CoordinatorRecordType
        return {kind.name(): kind.id() for kind in kinds.values()}

    def versions(self, record_type: RecordType) -> range:
        """Versions of the type's value that this release reads and writes."""
        kinds = self._jvm.org.apache.kafka.coordinator.group.generated.CoordinatorRecordType
        kind = kinds.fromId(record_type)
        return range(kind.lowestSupportedVersion(), kind.highestSupportedVersion() + 1)

    def write_key(self, key: NewGroupKey) -> bytes:
        node = self._mapper.readTree(json.dumps(key_json(key)))
        message = self._converters.readRecordKeyFromJson(node, int(key.record_type))
        return bytes(self._util.toCoordinatorTypePrefixedBytes(message))

    def write_value(self, record_type: RecordType, value: dict[str, Any], version: int) -> bytes:
        """Write a value given as JSON."""
        node = self._mapper.readTree(json.dumps(value))
        message = self._converters.readRecordValueFromJson(node, int(record_type), version)
        return bytes(self._util.toVersionPrefixedBytes(version, message))

    def read_value(self, key: bytes, value: bytes) -> Any | None:
        """Return the record's value as JSON, None where the coordinator refuses it."""
        serde = self._jvm.org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde()
        wrap = self._jvm.java.nio.ByteBuffer.wrap
        try:
            read = serde.deserialize(wrap(key), wrap(value)).value()
            node = self._converters.writeRecordValueAsJson(read.message(), read.version())
        except Py4JJavaError:
            return None
        return json.loads(node.toString())


def damage(data: st.DataObject, raw: bytes) -> bytes:
    """Overwrite up to two bytes, and cut up to three off."""
    damaged = bytearray(raw)
    for _ in range(data.draw(st.integers(0, 2))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    return bytes(damaged[: data.draw(st.integers(len(damaged) - 3, len(damaged)))])


def assert_read_as_written(
    coordinator: Coordinator, record_type: RecordType, value: Any, unset: bool, decode: Decode
) -> None:
    """In every version ours reads the value that the coordinator wrote."""
    # What isn't set is written as null, or left to the generated class's default.
    json = without_null(as_json(value)) if unset else as_json(value)
    for version in coordinator.versions(record_type):
        assert decode(record_type, coordinator.write_value(record_type, json, version)) == value


def assert_damaged_read_alike(
    coordinator: Coordinator,
    data: st.DataObject,
    record_type: RecordType,
    values: st.SearchStrategy[Any],
    decode: Decode,
) -> None:
    """What ours reads of a damaged record the coordinator reads of it, too."""
    key = new_group_key(data.draw(NEW_GROUP_KEYS[record_type]))
    raw = damage(data, new_group_record(data.draw(values)))
    assert_read_alike(coordinator, record_type, key, raw, decode)


def assert_read_alike(
    coordinator: Coordinator, record_type: RecordType, key: bytes, raw: bytes, decode: Decode
) -> None:
    """What ours reads of any bytes the coordinator reads of them, too."""
    try:
        ours = decode(record_type, raw)
    except DecodeError:
        return
    assert without_unset(as_json(ours)) == without_unset(coordinator.read_value(key, raw))
