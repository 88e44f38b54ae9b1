"""``caughtup rules``: the alert rules, with configurable thresholds and runbook addresses.

Only ``main`` imports it, when it is called.
"""
