"""docs/topics.md and its schemas are what models/records says, and take what readers take."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from caughtup.agents.topics.definitions import SERVICE_TOPICS
from caughtup.models.records.decoding import RefusedError
from tests.models.records.test_decoding import FORMATS, JUNK
from tests.models.wire.strategies import thorough
from tests.support.own_topics.records import SERVICE_RECORDS, ServiceRecord
from tests.support.topics.catalogue import TOPICS, Topic
from tests.support.topics.page import PAGE, examples, page
from tests.support.topics.schemas import (
    describe,
    encode,
    file_of,
    structs_of,
    topic_schema,
    unit_of,
)
from tests.support.topics.validation import Validator, kinds_of, problems

every_topic = pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.name)
every_record = pytest.mark.parametrize("own", SERVICE_RECORDS, ids=lambda own: own.name)

#: How the name of a field ends, and its unit.
UNITS = {"_ms": "ms", "seconds": "s", "per_second": "/s", "_bytes": "bytes", "_offset": "offset"}


def test_every_own_topic_has_a_schema() -> None:
    assert {topic.name for topic in TOPICS} == {own.name for own in SERVICE_TOPICS}


@every_topic
def test_the_file_is_what_the_code_says(topic: Topic) -> None:
    schema = topic_schema(topic)
    assert file_of(topic).read_text() == encode(schema), "make schemas"
    Draft202012Validator.check_schema(schema)


def test_the_page_is_what_the_code_says() -> None:
    assert PAGE.read_text() == page(), "make schemas"


@every_topic
def test_every_field_has_its_line_and_no_other_has(topic: Topic) -> None:
    for kind in topic.kinds:
        for struct in structs_of(kind.struct):
            assert describe(struct).fields.keys() == set(_names(struct)), struct
            assert describe(struct).summary


def _names(struct: type[msgspec.Struct]) -> list[str]:
    tag = struct.__struct_config__.tag_field
    return [*struct.__struct_encode_fields__, *([tag] if tag else [])]


@every_topic
def test_a_field_s_unit_is_what_its_name_says(topic: Topic) -> None:
    for part in topic_schema(topic)["$defs"].values():
        for name, field in part.get("properties", {}).items():
            for ending, unit in UNITS.items():
                assert not name.endswith(ending) or unit in unit_of(field), name


@every_record
def test_a_good_record_is_valid_and_what_is_wrong_with_another_is_said(own: ServiceRecord) -> None:
    assert problems(own.topic, own.key, own.encoded) == []
    (error,) = problems(own.topic, own.key, own.changed(later=1))
    assert "'later' was unexpected" in error
    lacking = {name: of for name, of in own.value.items() if name != "schema"}
    (error,) = problems(own.topic, own.key, json.dumps(lacking).encode())
    assert "'schema' is a required property" in error
    (error,) = problems(own.topic, own.key, own.changed(schema=99))
    assert "99 is not one of" in error
    (error,) = problems(own.topic, own.key, own.changed(schema=float(own.value["schema"])))
    assert "is not of type 'integer'" in error
    (error,) = problems(own.topic, b"", own.encoded)
    assert "no key is like" in error


@every_topic
def test_the_examples_are_valid_and_there_is_one_of_each_kind(topic: Topic) -> None:
    shown = examples()[topic.name]
    for example in shown:
        key, value = example["key"].encode(), json.dumps(example["value"]).encode()
        assert problems(topic.name, key, value) == []
        (kind,) = kinds_of(topic.name, [key], example["value"])
        struct = next(each.struct for each in topic.kinds if each.struct.__name__ == kind)
        assert msgspec.to_builtins(msgspec.json.decode(value, type=struct)) is not None
    kinds = [kinds_of(topic.name, [example["key"].encode()], example["value"]) for example in shown]
    assert kinds == [{kind.struct.__name__} for kind in topic.kinds]


@thorough
@given(st.data())
def test_a_schema_takes_what_readers_take(data: st.DataObject) -> None:
    own = data.draw(st.sampled_from(SERVICE_RECORDS))
    changes: dict[str, Any] = data.draw(st.dictionaries(st.sampled_from(sorted(own.value)), JUNK))
    value = own.changed(**changes)
    try:
        FORMATS[own.name].decode(value)
        taken = True
    except RefusedError:
        taken = False
    (struct,) = kinds_of(own.topic, [own.key], own.value)
    topic = next(each for each in TOPICS if each.name == own.topic)
    schema = {**topic_schema(topic), "$ref": f"#/$defs/{struct}"}
    for name in ("if", "then", "else"):
        schema.pop(name, None)
    assert Validator(schema).is_valid(json.loads(value)) == taken
