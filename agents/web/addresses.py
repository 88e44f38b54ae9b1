"""Addresses of web ports, as text: the command line uses them without a web server."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address

#: The header of a request that another instance has forwarded, with the number that that one chose
#: for itself: it is not forwarded again, since two instances may disagree for a moment about who has
#: a group.
FORWARDED = "Caughtup-Forwarded"
#: The header of an answer that lacks the groups of instances that did not answer: their names.
MISSING = "Caughtup-Missing"


def host_name(host: str) -> str | None:
    """Return the name or address of a Host header without its port, None if it is neither."""
    if host.startswith("["):
        address, bracket, port = host[1:].partition("]")
        if bracket and (not port or port.startswith(":")) and is_address(address):
            return address
        return None
    name, _, port = host.partition(":")
    return name if not port or port.isdecimal() else None


def authority(host: str, port: int) -> str:
    """Return a name or an address with a port, as in a URL."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_address(name: str) -> bool:
    """Return whether a name is an IPv4 or IPv6 address."""
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Return whether an address or name is reachable from this machine only."""
    if host == "localhost":
        return True
    if not is_address(host):
        return False
    address = ip_address(host)
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback
