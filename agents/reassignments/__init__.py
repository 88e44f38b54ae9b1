"""The probe that publishes observations of reassignments, and the agent that applies them.

Imports agents.probes and agents.topics; ``app`` and the command line import it.
"""
