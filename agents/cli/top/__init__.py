"""``caughtup top``: the cluster live on a terminal, from a running service or from snapshots of its own.

Imports lag and reassignments for their rows; only ``main`` imports it, when it is called.
"""
