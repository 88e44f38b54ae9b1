"""Keeps the last hours: figures of groups over time and what happened, for the page.

Imports models.recent and the state; ``app`` imports it.
"""
