"""``caughtup bench loop``: how long the event loop is kept from its turn.

Imports agents.app; only bench.main imports it.
"""
