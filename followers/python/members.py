"""A group's members as their leader hears of them."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Collection, Mapping
from typing import NamedTuple

from caughtup.models.errors import CaughtupError
from caughtup.models.ids import ProcessId
from caughtup.models.wire.subscription_info import SubscriptionInfo, decode_subscription_info

log = logging.getLogger("caughtup.followers")

#: Members, each with what it said of itself; None where that couldn't be read.
Members = Mapping[str, SubscriptionInfo | None]


class Subscribed(NamedTuple):
    """What a member told the group when it joined: its topics and its user data."""

    topics: Collection[str]
    user_data: bytes | None


def read_member(member_id: str, user_data: bytes | None) -> SubscriptionInfo | None:
    """Read what a member said of itself; None if that isn't what followers say."""
    try:
        return decode_subscription_info(user_data or b"")
    except CaughtupError as error:
        log.warning("member %s takes part as a new one: %s", member_id, error)
        return None


def process_of(member_id: str, info: SubscriptionInfo | None) -> ProcessId:
    """Name a member's process; one that can't be read takes part under an id made of its name."""
    if info is not None:
        return info.process_id
    digest = hashlib.sha256(member_id.encode("utf-8", "surrogatepass")).digest()
    return ProcessId.of(int.from_bytes(digest[:16], "big"))
