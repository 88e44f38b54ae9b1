"""A group's members as their leader reads them."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Collection, Mapping
from typing import NamedTuple

from caughtup.models.errors import CaughtupError
from caughtup.models.ids import ProcessId
from caughtup.models.wire.subscription_info import SubscriptionInfo, decode_subscription_info

log = logging.getLogger("caughtup.followers")

#: Members by id, with their decoded user data; None where that couldn't be decoded.
Members = Mapping[str, SubscriptionInfo | None]


class Subscribed(NamedTuple):
    """A member's subscription: its topics and its user data."""

    topics: Collection[str]
    user_data: bytes | None


def read_member(member_id: str, user_data: bytes | None) -> SubscriptionInfo | None:
    """Decode a member's user data; None, with a warning, if a follower didn't write them."""
    try:
        return decode_subscription_info(user_data or b"")
    except CaughtupError as error:
        log.warning("member %s takes part as a new one: %s", member_id, error)
        return None


def process_of(member_id: str, info: SubscriptionInfo | None) -> ProcessId:
    """Name a member's process; one without user data gets an id made of its member id."""
    if info is not None:
        return info.process_id
    digest = hashlib.sha256(member_id.encode("utf-8", "surrogatepass")).digest()
    return ProcessId.of(int.from_bytes(digest[:16], "big"))
