"""``caughtup simulate`` and ``caughtup safe``: what a change to a group would cost.

Only ``main`` imports it, when it is called.
"""
