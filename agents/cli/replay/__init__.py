"""``caughtup replay``: what other settings would have decided.

Imports pipelines when it is called; only ``main`` imports it.
"""
