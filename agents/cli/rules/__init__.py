"""``caughtup rules``: the alert rules, with thresholds and runbooks of one's own.

Only ``main`` imports it, when it is called.
"""
