"""Random damage to bytes: truncated, overwritten, extended, with wrong lengths."""

from __future__ import annotations

from random import Random

#: Wrong lengths and counts, and the extremes of numbers.
LIES = (
    *(b"\xff\xff", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x3b\x9a\xca\x00", b"\x00"),
    *(b"\xff\xff\xff\xff\x0f", b"\x81\x94\xeb\xdc\x03", b"\xff" * 6, b"\xc3\x28", b"\x80"),
    *(b"\x7f" + b"\xff" * 7, b"\x80" + bytes(7), bytes(8), b"\xff" * 8),
)


def damaged(random: Random, raw: bytes) -> bytes:
    """Damage bytes in one to three places, or replace them."""
    made = bytearray(raw)
    for _ in range(random.randint(1, 3)):
        at = random.randint(0, len(made))
        match random.randrange(7):
            case 0:
                del made[at:]
            case 1:
                made[at : at + 1] = bytes((random.randrange(256),))
            case 2:
                lie = random.choice(LIES)
                made[at : at + random.choice((0, len(lie)))] = lie
            case 3:
                made[at:at] = random.randbytes(random.randint(1, 8))
            case 4:
                del made[at : at + random.randint(1, 4)]
            case 5:
                made[:2] = _version(random)
            case 6:
                made[:] = _version(random) + random.randbytes(random.randint(0, 40))
    return bytes(made)


def _version(random: Random) -> bytes:
    """Return a version of the record, or an unknown one."""
    return random.randint(-1, 25).to_bytes(2, signed=True)
