"""``caughtup lag``: the lag of groups and tasks, from a snapshot or from a running service.

Only ``main`` imports it, when it is called.
"""
