"""Keep the last hours in memory: figures of groups over time and events, for the page.

Imports models.recent and the state; ``app`` imports it.
"""
