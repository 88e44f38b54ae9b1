"""``caughtup bench movement``: movements of the recommendation against a bound.

Imports models and demo; the benchmark of replays shares its changes, and imports it.
"""
