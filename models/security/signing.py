"""Signatures of recommendations: HMAC-SHA256 with keys that the service and followers share."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from caughtup.models.assignors.following.recommendation import Objection
from caughtup.models.errors import CaughtupError

#: The record header that carries a signature: ``hmac-sha256:KEY-ID:HEX``.
HEADER = "caughtup-signature"
#: The signed bytes begin with their purpose, so that a signature is valid for no other purpose.
_PURPOSE = b"caughtup recommended-assignments 1"
_LEAST_BYTES = 32
_LENGTH = struct.Struct(">I")
_KEY = re.compile(
    r"([A-Za-z0-9._-]{1,64})[ \t]+"
    r"((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?)"
)
#: Group, value and HEADER of a record → why it isn't one of the service's; None if it is.
FindForgery = Callable[[str, bytes, bytes | None], Objection | None]
_SIGNATURE = re.compile(rb"hmac-sha256:([A-Za-z0-9._-]{1,64}):([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A key and its id; the secret is never shown."""

    name: str
    secret: bytes = field(repr=False)


def read_keys(text: str) -> tuple[SigningKey, ...]:
    """Read a key file: a line for each key, its id and at least 32 bytes in base64.

    Lines that are empty or begin with ``#`` are skipped. The first key signs; all of them verify.
    Raises CaughtupError ``bad_key_file``, whose message has the line number and nothing of its
    contents. Source: ``caughtup.SigningKeys``.
    """
    keys: dict[str, SigningKey] = {}
    for number, line in enumerate(text.split("\n"), 1):
        text = line.strip(" \t\r")
        if not text or text.startswith("#"):
            continue
        found = _KEY.fullmatch(text)
        if found is None:
            raise _bad(f"line {number} is not a key's id and the key in base64")
        name, encoded = found.groups()
        secret = base64.b64decode(encoded)
        if len(secret) < _LEAST_BYTES:
            raise _bad(f"the key in line {number} is shorter than {_LEAST_BYTES} bytes")
        if name in keys:
            raise _bad(f"the key id in line {number} occurs twice")
        keys[name] = SigningKey(name, secret)
    if not keys:
        raise _bad("the file has no key")
    return tuple(keys.values())


def sign(key: SigningKey, cluster: str, group: str, value: bytes) -> bytes:
    """Return the header's value for a recommendation to a group, with the cluster's id."""
    return b"hmac-sha256:%s:%s" % (
        key.name.encode(),
        _digest(key, cluster, group, value).hex().encode(),
    )


def find_forgery(
    keys: Sequence[SigningKey], cluster: str, group: str, value: bytes, header: bytes | None
) -> Objection | None:
    """Return why a record isn't accepted as the service's own; None if it is."""
    if header is None:
        return Objection("not_signed", "the recommendation is not signed")
    found = _SIGNATURE.fullmatch(header)
    if found is None:
        return _refused("has the wrong format")
    name, signature = found.groups()
    key = _find(keys, name.decode())
    if key is None:
        return _refused("is by a key that is not configured here")
    if not hmac.compare_digest(_digest(key, cluster, group, value).hex().encode(), signature):
        return _refused("does not match the record")
    return None


def _digest(key: SigningKey, cluster: str, group: str, value: bytes) -> bytes:
    """Return the HMAC of the parts, each after its length, so that parts can't be shifted."""
    mac = hmac.new(key.secret, digestmod=hashlib.sha256)
    for part in (_PURPOSE, cluster.encode(), group.encode(), value):
        mac.update(_LENGTH.pack(len(part)))
        mac.update(part)
    return mac.digest()


def _find(keys: Iterable[SigningKey], name: str) -> SigningKey | None:
    return next((key for key in keys if key.name == name), None)


def _refused(message: str) -> Objection:
    return Objection("bad_signature", f"the recommendation's signature {message}")


def _bad(message: str) -> CaughtupError:
    return CaughtupError("bad_key_file", message)
