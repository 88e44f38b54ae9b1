"""The web side: server, page, access, and what they answer from.

Imports views and process; only ``app`` imports it.
"""
