"""``caughtup bench replay``: many recorded groups on one and more threads.

Imports pipelines and bench.movement; only bench.main imports it.
"""
