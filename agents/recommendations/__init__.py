"""Deciding generations and publishing what is recommended for the next rebalance.

Imports agents.topics; ``app`` and the other agents import it.
"""
