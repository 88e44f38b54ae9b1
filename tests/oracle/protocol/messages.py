"""The message classes of the published jar, driven through their own JSON form.

Kafka generates each message's class, its serialiser and a converter from and to JSON from one
schema. What we write the jar reads, and gives back as JSON; what it writes of JSON we read.
"""

from __future__ import annotations

import json
from typing import Any

from caughtup.agents.kafka.protocol.requests import Call, Key


class Messages:
    """The jar's message classes."""

    def __init__(self, jvm: Any) -> None:
        self._jvm = jvm
        self._mapper = jvm.com.fasterxml.jackson.databind.ObjectMapper()

    def read(self, call: Call) -> dict[str, Any]:
        """Read a request to its last byte, and give it as JSON."""
        return self._as_json(f"{call.key.request}Request", call.body, call.version)

    def write(self, call: Call, answer: dict[str, Any]) -> bytes:
        """Write the answer to a request, given as JSON."""
        return self.write_message(f"{call.key.request}Response", answer, call.version)

    def write_message(self, name: str, message: dict[str, Any], version: int) -> bytes:
        node = self._mapper.readTree(json.dumps(message))
        made = self._converter(name).read(node, version)
        util = self._jvm.org.apache.kafka.common.protocol.MessageUtil
        return bytes(util.toByteBufferAccessor(made, version).buffer().array())

    def read_header(self, call: Call, raw: bytes) -> tuple[dict[str, Any], int]:
        """Read a request's header to its last byte; and the version of its answer's header."""
        kind = self._jvm.org.apache.kafka.common.protocol.ApiKeys.forId(int(call.key))
        header = self._as_json("RequestHeader", raw, kind.requestHeaderVersion(call.version))
        return header, kind.responseHeaderVersion(call.version)

    def versions(self, key: Key) -> range:
        """Versions of a request that this release's brokers take."""
        kind = self._jvm.org.apache.kafka.common.protocol.ApiKeys.forId(int(key))
        return range(kind.oldestVersion(), kind.latestVersion() + 1)

    def _as_json(self, name: str, raw: bytes, version: int) -> dict[str, Any]:
        buffer = self._jvm.java.nio.ByteBuffer.wrap(raw)
        accessor = self._jvm.org.apache.kafka.common.protocol.ByteBufferAccessor(buffer)
        message = getattr(self._jvm.org.apache.kafka.common.message, f"{name}Data")()
        message.read(accessor, version)
        assert accessor.remaining() == 0
        found: dict[str, Any] = json.loads(self._converter(name).write(message, version).toString())
        return found

    def _converter(self, name: str) -> Any:
        return getattr(self._jvm.org.apache.kafka.common.message, f"{name}DataJsonConverter")
