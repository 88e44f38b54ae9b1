"""``caughtup pipeline generations``: every generation with the scenario it was decided from.

Imports spark; history and replay import it.
"""
