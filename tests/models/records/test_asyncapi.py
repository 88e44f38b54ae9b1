"""The AsyncAPI document of all own topics: valid by AsyncAPI's own schema, and true."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from jsonschema.validators import validator_for

from caughtup.agents.topics.definitions import SERVICE_TOPICS
from tests.support.npm import packed_file
from tests.support.topics.asyncapi import FILE, document
from tests.support.topics.catalogue import TOPICS
from tests.support.topics.schemas import encode

SPECS = (
    "@asyncapi/specs",
    "6.11.1",
    "A3WBLqAKGoJ2+6FWFtpjBlCQ1oFCcs4GxF7zsIGvNqp/klGUHjlA3aAcZ9XMMpLGE8zPeYDz2x9FmO6DSuKraQ==",
)


@cache
def validator() -> Any:
    schema = json.loads(packed_file(*SPECS, "schemas/3.0.0.json"))
    return validator_for(schema)(schema)


def test_the_file_is_what_the_code_says() -> None:
    assert FILE.read_text() == encode(document()), "make schemas"


def test_it_is_valid_by_the_specification_s_own_schema() -> None:
    assert [error.message for error in validator().iter_errors(document())] == []


@pytest.mark.parametrize(
    "breaking",
    [
        lambda found: found.pop("info"),
        lambda found: found["channels"]["lag"].update(adress="x"),
        lambda found: found["operations"]["send-lag"].update(action="publish"),
        lambda found: found["components"]["messages"]["CopyLine"].update(payload="text"),
    ],
    ids=["info", "address", "action", "payload"],
)
def test_what_isnt_valid_is_found(breaking: Any) -> None:
    found = document()
    breaking(found)
    assert not validator().is_valid(found)


def test_every_topic_is_a_channel_and_the_service_sends_what_it_writes() -> None:
    found = document()
    assert list(found["channels"]) == [topic.name for topic in TOPICS]
    sent = {name.removeprefix("send-") for name in found["operations"] if name.startswith("send-")}
    assert sent == {own.name for own in SERVICE_TOPICS if own.written}
    for topic in TOPICS:
        messages = set(found["channels"][topic.name]["messages"])
        tombstone = {"Tombstone"} if topic.tombstones else set()
        assert messages == {kind.struct.__name__ for kind in topic.kinds} | tombstone


def test_whatever_it_refers_to_is_there() -> None:
    refs = list(references(document()))
    assert len(refs) > 3 * len(TOPICS)
    for ref in refs:
        file, _, pointer = ref.partition("#/")
        at: Any = json.loads((FILE.parent / file).read_text()) if file else document()
        for part in pointer.split("/"):
            assert part in at, ref
            at = at[part]


def test_every_message_has_an_example() -> None:
    for name, message in document()["components"]["messages"].items():
        assert message["examples"], name


def references(value: Any) -> Any:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for one in value.values():
            yield from references(one)
    elif isinstance(value, list):
        for one in value:
            yield from references(one)
