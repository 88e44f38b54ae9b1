"""What the web port refuses is counted, and a line a minute at most, without a traceback."""

from __future__ import annotations

import logging
import re

import pytest

from caughtup.agents.process.health import Health
from caughtup.agents.web.door.refusals import REASONS
from tests.support.observability.site import Site

#: What aiohttp logs: an error in some of them, for debugging only in others.
MALFORMED = (
    b"GET / HTTP/9.x\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # TLS, which waits for an answer
    b"GET /ready HTTP/1.1\r\nHost : x\r\n\r\n",
    b"GET /" + b"x" * 10_000 + b" HTTP/1.1\r\n\r\n",
)


async def test_requests_that_cannot_be_parsed_are_counted_and_a_line_at_most(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "caughtup")
    async with Site() as site:
        for number in range(40):
            async with site.connected() as connected:
                connected.writer.write(MALFORMED[number % len(MALFORMED)])
                assert b"400 Bad Request" in await connected.ended()
        assert site.health.web_refusals == {"malformed": 40}
        async with site.get("/metrics") as answer:
            counts = dict(re.findall(r'_refusals_total{.*reason="(.*)"} (.*)', await answer.text()))
    assert counts == dict.fromkeys(REASONS, "0.0") | {"malformed": "40.0"}
    (said,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert "can't be parsed" in said.getMessage()
    assert said.exc_info is None


async def test_a_bug_in_an_answer_is_still_logged_with_its_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with Site(health=Health(doubt=lambda: str(1 // 0))) as site:
        assert await site.status("/ready") == 500
    (said,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert said.exc_info is not None
    assert "ZeroDivisionError" in str(said.exc_info[0])
