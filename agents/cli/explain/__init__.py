"""``caughtup explain``: who decided a group's assignment, why, and what would be better.

Only ``main`` imports it, when it is called.
"""
