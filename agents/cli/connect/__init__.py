"""``caughtup connect``: who runs which connector and task, what nobody runs, and what comes next.

Only ``main`` imports it, when it is called.
"""
