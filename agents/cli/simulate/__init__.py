"""``caughtup simulate`` and ``caughtup safe``: what would happen if, and whether to do it now.

Only ``main`` imports it, when it is called.
"""
