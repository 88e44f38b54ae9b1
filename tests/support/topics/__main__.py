"""``make schemas``: write docs/topics.md and docs/topics/."""

from __future__ import annotations

from tests.support.topics.asyncapi import FILE, document
from tests.support.topics.catalogue import TOPICS
from tests.support.topics.page import PAGE, page
from tests.support.topics.schemas import encode, file_of, topic_schema

for topic in TOPICS:
    file_of(topic).write_text(encode(topic_schema(topic)))
PAGE.write_text(page())
FILE.write_text(encode(document()))
