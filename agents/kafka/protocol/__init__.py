"""Kafka requests that no client library offers: their bytes, and the connections they take.

Imports models.wire; nothing of agents.
"""
