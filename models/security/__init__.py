"""Kafka's security properties for every client, and signatures of recommendations.

Imports errors; the shell and the followers import it.
"""
