"""How long a leader waits that would take work away for balance again and again."""

from __future__ import annotations

import math

_MULTIPLIER = 40


def revocation_backoff_ms(times: int, max_delay_ms: int) -> int:
    """Return the delay in ms after so many revoking rounds in a row, the first of which is 1.

    1 ms times 40 for each, and no more than ``scheduled.rebalance.max.delay.ms``. Java computes
    the greatest exponent by logarithms, so that it may end a millisecond below: at 999 of 1,000.
    Where another rounding decides about that, as for one delay in 14,000 and no whole seconds up to
    eight hours, this may be a millisecond off: no language promises the last bit of a logarithm.
    Source: Kafka's ``ExponentialBackoff``.
    """
    if max_delay_ms <= 1:
        return max_delay_ms
    greatest = math.log(max_delay_ms) / math.log(_MULTIPLIER)
    return min(int(math.pow(_MULTIPLIER, min(times, greatest))), max_delay_ms)
