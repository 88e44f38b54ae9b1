"""``caughtup connect``: which worker runs which connector and task, and what is unassigned.

Only ``main`` imports it, when it is called.
"""
