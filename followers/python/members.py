"""A group's members, decoded by their leader."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Collection, Mapping
from typing import NamedTuple

from caughtup.models.errors import CaughtupError
from caughtup.models.ids import ProcessId
from caughtup.models.wire.subscription_info import SubscriptionInfo, decode_subscription_info

log = logging.getLogger("caughtup.followers")

#: Members' decoded user data, by member id; None if they could not be decoded.
Members = Mapping[str, SubscriptionInfo | None]


class FollowerSubscription(NamedTuple):
    """A member's subscription: its topics and its user data."""

    topics: Collection[str]
    user_data: bytes | None


def read_member(member_id: str, user_data: bytes | None) -> SubscriptionInfo | None:
    """Decode a member's user data; log a warning and return None if no follower wrote them."""
    try:
        return decode_subscription_info(user_data or b"")
    except CaughtupError as error:
        log.warning("member %s takes part as a new one: %s", member_id, error)
        return None


def process_of(member_id: str, info: SubscriptionInfo | None) -> ProcessId:
    """Return a member's process id; without user data, an id derived from its member id."""
    if info is not None:
        return info.process_id
    digest = hashlib.sha256(member_id.encode("utf-8", "surrogatepass")).digest()
    return ProcessId.of(int.from_bytes(digest[:16], "big"))
