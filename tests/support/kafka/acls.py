"""ACLs for users of a cluster."""

from __future__ import annotations

from typing import NamedTuple

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

PREFIXED, LITERAL = ResourcePatternType.PREFIXED, ResourcePatternType.LITERAL
READ, WRITE, CREATE, DESCRIBE, ALL = (
    AclOperation.READ,
    AclOperation.WRITE,
    AclOperation.CREATE,
    AclOperation.DESCRIBE,
    AclOperation.ALL,
)


class Allowed(NamedTuple):
    """A right: allowed operations on a resource; or denied ones, which count more."""

    kind: ResourceType
    name: str
    operations: tuple[AclOperation, ...]
    pattern: ResourcePatternType = LITERAL
    permission: AclPermissionType = AclPermissionType.ALLOW

    def bindings(self, user: str) -> list[AclBinding]:
        """Return the ACLs that give the right to a user."""
        return [
            AclBinding(
                self.kind,
                self.name,
                self.pattern,
                f"User:{user}",
                "*",
                operation,
                self.permission,
            )
            for operation in self.operations
        ]


def topic(name: str, *operations: AclOperation) -> Allowed:
    """Return the right to some operations on a topic."""
    return Allowed(ResourceType.TOPIC, name, operations)


def hidden(name: str) -> Allowed:
    """Return the denial of every operation on a topic."""
    return Allowed(ResourceType.TOPIC, name, (ALL,), permission=AclPermissionType.DENY)


def prefixed(kind: ResourceType, prefix: str, *operations: AclOperation) -> Allowed:
    """Return the right to some operations on all resources with a prefix."""
    return Allowed(kind, prefix, operations, PREFIXED)


def allow(admin: AdminClient, user: str, *rights: Allowed) -> None:
    """Give rights to a user, and wait until the controller has the ACLs."""
    bindings = [binding for right in rights for binding in right.bindings(user)]
    for created in admin.create_acls(bindings).values():
        created.result(30)
