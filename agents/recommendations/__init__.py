"""Decide generations, and publish recommendations for the next rebalance.

Imports agents.topics; ``app`` imports it.
"""
