"""``caughtup bench door``: what others get while the web port is abused.

Imports agents.cli; only bench.main imports it.
"""
