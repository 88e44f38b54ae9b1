"""``caughtup bench assign``: decisions against the published jar.

Imports demo; only bench.main imports it.
"""
