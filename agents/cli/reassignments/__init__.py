"""``caughtup reassignments``: what moves, how fast, and what holds it up.

Only ``main`` imports it, when it is called.
"""
