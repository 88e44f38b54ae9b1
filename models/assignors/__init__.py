"""Task assignors, a folder each; ``registry`` has them by name.

Imports models.assignment; decisions, replay, simulation and the followers import it.
"""
