"""``caughtup explain``: an application's last assignment, and why it is so.

Only ``main`` imports it, when it is called.
"""
