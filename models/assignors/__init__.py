"""Task assignors, one folder each; ``registry`` maps their names to them.

Imports models.assignment; decisions, replay, simulation and the followers import it.
"""
