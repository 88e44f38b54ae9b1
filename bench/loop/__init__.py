"""``caughtup bench loop``: the longest turns of the event loop with a large group.

Imports agents.app; only bench.main imports it.
"""
