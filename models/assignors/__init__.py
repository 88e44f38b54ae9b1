"""Task assignors: a scenario in, a decision out; ``registry`` has them by name.

Imports ids and errors; decisions, replay, simulation and the followers import it.
"""
