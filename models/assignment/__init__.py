"""The inputs and the result of an assignor: the scenario, the decision, and its movements.

Imports ids and errors; every assignor, decisions, replay and the followers import it.
"""
