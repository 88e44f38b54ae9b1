"""Rounds of observations: reassignments, replicas, throttles, and their pace.

Imports agents.kafka; agents and the command line import it.
"""
