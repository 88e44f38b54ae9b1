"""Kafka requests that no client library offers: encoding, decoding, and connections.

Imports models.wire; nothing of agents.
"""
