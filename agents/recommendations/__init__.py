"""Decide generations, and publish recommendations for the next rebalance.

Imports agents.topics; ``app`` and the other agents import it.
"""
