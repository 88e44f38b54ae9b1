"""caughtup: which copies of which task are caught up, and what the next rebalance should do."""

__version__ = "0.1.0"
