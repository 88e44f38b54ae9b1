"""Members as their group's coordinator knows them, and how a static one takes its own place again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from caughtup.models.simulation.membership import Member
from caughtup.models.simulation.session import Session
from caughtup.models.simulation.virtual_time import Event


@dataclass(slots=True)
class Known:
    """A member as its coordinator has it, and its side of joining again.

    ``joined`` is what it said when it joined last, and ``assignment`` what the leader decided for
    it, which a static member is given again, as is one that stood still then. ``generation`` is the
    last of which it knows.
    """

    member: Member
    session: Session
    joined: Any = None
    assignment: Any = None
    generation: int = 0
    has_joined: bool = False
    rejoin: Event | None = None

    def cancel_rejoin(self) -> None:
        """Keep the member from joining again when it was going to."""
        if self.rejoin is not None:
            self.rejoin.cancel()
            self.rejoin = None


def take_over(members: dict[str, Known], member: Member) -> tuple[str, Known] | None:
    """Put a static member that starts anew in the place of the one with its instance id.

    Returns the id that it had and what is known of it; None where the group has no such member, or
    the member isn't static. The coordinator keeps its members in a hash table: a new id, which
    stands last here, is another place.
    """
    if member.instance_id is None:
        return None
    for former_id, known in members.items():
        if known.member.instance_id == member.instance_id:
            known.session.end()
            del members[former_id]
            members[member.member_id] = known
            return former_id, known
    return None
