"""What an assignor is given and what it decides: the scenario, the decision, and its reasons.

Imports ids and errors; every assignor, decisions, replay and the followers import it.
"""
