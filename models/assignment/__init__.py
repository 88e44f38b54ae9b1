"""What an assignor decides from and what it decides: the scenario, the decision, and its movements.

Imports ids and errors; every assignor, decisions, replay and the followers import it.
"""
